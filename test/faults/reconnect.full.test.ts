import { describe, expect, it } from "@jest/globals";
import { useMongo } from "../support/mongo/mongo.js";
import { hangTimeout, until } from "../support/until.js";
import { outages, startProxiedService } from "./support/mongo-proxy.js";
import { startSteadyLoad } from "./support/steady-load.js";

const callsPerSecond = 150;
/** The number of calls during the outage, and of successful calls after it. */
const callsDuringOutage = 450;
const callsAfter = 300;

/** The connection limit of the driver's pool, which opens two at a time. */
const poolSize = 100;
/** The limit of pending connections: those of the pool, and monitoring connections while others are replaced. */
const maxPending = 20;
/** The limit of attempts to open monitoring connections. The driver waits half a second between two attempts. */
const monitorAttemptsPerSecond = 8;

const mongo = useMongo();

describe("a service under steady load", () => {
  it.each(Object.entries(outages))(
    "does not flood MongoDB with connections when MongoDB %s, nor afterwards",
    async (name, interrupt) => {
      const { proxy, server, close } = await startProxiedService(
        mongo.createDatabase().databaseName,
      );
      const { key } = await server.createTenant();
      const load = startSteadyLoad({ url: server.url, key }, callsPerSecond);
      const attemptsBefore = proxy.attempts().length;
      const startedAt = performance.now();
      interrupt(proxy);
      await until(async () => load.count() >= callsDuringOutage);
      proxy.restore();
      const served = load.outcomes.ok ?? 0;
      await until(async () => (load.outcomes.ok ?? 0) >= served + callsAfter);
      const outcomes = await load.stop();
      const seconds = (performance.now() - startedAt) / 1_000;
      const attempts = proxy.attempts().length - attemptsBefore;
      await close();

      const { ok: _, unavailable = 0, ...others } = outcomes;
      expect(others).toEqual({});
      // A slow machine needs more seconds for the same calls, which allows more attempts.
      expect(attempts).toBeLessThan(poolSize + monitorAttemptsPerSecond * seconds);
      expect(proxy.peakPending()).toBeLessThan(maxPending);
      console.info(
        `MongoDB ${name}: ${load.count()} calls in ${seconds.toFixed(1)} s, ${unavailable} unavailable, ` +
          `${attempts} connection attempts, at most ${proxy.peakPending()} pending`,
      );
    },
    4 * hangTimeout,
  );
});

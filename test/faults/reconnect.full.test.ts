import { describe, expect, it } from "@jest/globals";
import { useMongo } from "../support/mongo/mongo.js";
import { hangTimeout, until } from "../support/until.js";
import { outages, startBlockableService } from "./support/blockable-service.js";
import { startSteadyCalls } from "./support/steady-calls.js";

const callsPerSecond = 150;
/** How many calls come while the store is away, and how many are served after. */
const callsWhileAway = 450;
const callsAfter = 300;

/** The driver keeps at most so many connections, and tries to make two at a time. */
const poolSize = 100;
/** So many may be on their way at once: those, and the ones that watch the server, when others are replaced. */
const mostAtOnce = 20;
/** So often connections that watch the server may be tried, each second. The driver waits half a second between two tries. */
const watchesPerSecond = 8;

const mongo = useMongo();

describe("a service under steady load", () => {
  it.each(Object.entries(outages))(
    "does not flood MongoDB with connections when MongoDB %s, nor afterwards",
    async (name, begin) => {
      const { proxy, server, close } = await startBlockableService(
        mongo.createDatabase().databaseName,
      );
      const { key } = await server.createTenant();
      const calls = startSteadyCalls({ url: server.url, key }, callsPerSecond);
      const attemptsBefore = proxy.attempts().length;
      const begun = performance.now();
      begin(proxy);
      await until(async () => calls.made() >= callsWhileAway);
      proxy.restore();
      const served = calls.outcomes.ok ?? 0;
      await until(async () => (calls.outcomes.ok ?? 0) >= served + callsAfter);
      const outcomes = await calls.stop();
      const seconds = (performance.now() - begun) / 1_000;
      const attempts = proxy.attempts().length - attemptsBefore;
      await close();

      const { ok: _, unavailable = 0, ...others } = outcomes;
      expect(others).toEqual({});
      // A slow machine makes the same calls in more seconds, and so more tries are right.
      expect(attempts).toBeLessThan(poolSize + watchesPerSecond * seconds);
      expect(proxy.peakUnanswered()).toBeLessThan(mostAtOnce);
      console.info(
        `whose MongoDB ${name}: ${calls.made()} calls in ${seconds.toFixed(1)} s, ${unavailable} unavailable, ` +
          `${attempts} connections tried, ${proxy.peakUnanswered()} at once`,
      );
    },
    4 * hangTimeout,
  );
});

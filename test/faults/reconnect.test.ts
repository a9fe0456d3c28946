import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "@jest/globals";
import { useMongo } from "../support/mongo.js";
import { blockades, startBlockableService } from "./support/blockable-service.js";
import { startSteadyCalls } from "./support/steady-calls.js";

const callsPerSecond = 150;
/** For how long the store is away, and for how long calls go on when it is back, in milliseconds. */
const away = 3_000;
const back = 4_000;

/**
 * How many connections to the store there may be tried in any second: fewer
 * than calls, of which hundreds wait when the store is back.
 */
const mostAttempts = 100;

const mongo = useMongo();

/** How many of some moments lie within one second at most. */
function mostInASecond(moments: readonly number[]): number {
  const within = moments.map((from) => moments.filter((at) => at >= from && at < from + 1000));
  return Math.max(0, ...within.map(({ length }) => length));
}

describe("a service that is called on and on", () => {
  it.each(Object.entries(blockades))(
    "while its MongoDB %s, and after, does not storm it with connections",
    async (_, begin) => {
      const { proxy, server, close } = await startBlockableService(
        mongo.createDatabase().databaseName,
      );
      const { key } = await server.createTenant();
      const calls = startSteadyCalls({ url: server.url, key }, callsPerSecond);
      begin(proxy);
      const begun = performance.now();
      await delay(away);
      proxy.mend();
      await delay(back);
      const outcomes = await calls.stop();
      const attempts = proxy.attempts().filter((at) => at > begun);
      await close();

      const { ok = 0, unavailable = 0, ...others } = outcomes;
      expect(others).toEqual({});
      expect(ok + unavailable).toBeGreaterThan(callsPerSecond * ((away + back) / 1_000 - 1));
      // Those that came when it was back, at least.
      expect(ok).toBeGreaterThan(callsPerSecond);
      expect(mostInASecond(attempts)).toBeLessThan(mostAttempts);
    },
    60_000,
  );
});

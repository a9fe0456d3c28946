import { once } from "node:events";
import { connect } from "node:net";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "@jest/globals";
import { withFolder } from "../support/process.js";
import { useServices } from "../support/service-process.js";
import { until } from "../support/until.js";
import { callUntilRefused } from "./support/draining-load.js";

/** Within which a service stops that is told to, in milliseconds. */
const longestStop = 15_000;

/**
 * A round says nothing in which this process stood still for as long, in
 * milliseconds: what it sends comes after connections that wait are ended.
 */
const longestStall = 300;
/** How many rounds it takes at most until one says something. */
const mostRounds = 3;

const start = useServices();

/** The moments at which it is told to stop differ, as much of what may go wrong lasts but a moment. */
const rounds = [
  ["1", 400],
  ["1", 650],
  ["2", 500],
  ["2", 850],
] as const;

/** Whether a new connection is refused. */
async function isRefused(port: number): Promise<boolean> {
  const late = connect(port, "127.0.0.1");
  try {
    await once(late, "connect");
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ECONNREFUSED";
  } finally {
    late.destroy();
  }
}

/** Tells a service under load to stop: what became of the calls, and for how long this process stood still. */
function stopUnderLoad(WORKERS: string, after: number) {
  return withFolder(async (DATA_DIR) => {
    const { url, firstKey, process } = await start({ DATA_DIR, WORKERS });
    const stop = { at: Number.POSITIVE_INFINITY };
    const load = callUntilRefused({ url, key: firstKey }, stop);
    await delay(after);
    const lag = monitorEventLoopDelay({ resolution: 20 });
    lag.enable();
    stop.at = performance.now();
    process.child.kill("SIGTERM");
    const tally = await load;
    lag.disable();
    expect(await process.ended()).toBe(0);
    expect(performance.now() - stop.at).toBeLessThan(longestStop);
    expect(process.output.stdout).toContain('"msg":"stopped"');
    return { tally, stall: lag.max / 1e6 };
  });
}

/** Whether calls were lost, and perhaps because they were sent late. */
function saysNothing({ tally, stall }: Awaited<ReturnType<typeof stopUnderLoad>>): boolean {
  const isLost = tally.dropped.length > 0 || tally.lastWords.some((word) => word !== "close");
  return isLost && stall > longestStall;
}

describe("a service under load that is told to stop", () => {
  it.each(rounds)(
    "answers all that was sent to it, with WORKERS=%s after %i ms, then ends with 0",
    async (workers, after) => {
      let round = await stopUnderLoad(workers, after);
      for (let count = 1; count < mostRounds && saysNothing(round); count++) {
        round = await stopUnderLoad(workers, after);
      }
      const { dropped, answers, lastWords } = round.tally;
      expect(dropped).toEqual([]);
      expect(Object.keys(answers).sort()).toEqual(["HTTP 200", "HTTP 201", "gRPC 0"]);
      expect(new Set(lastWords)).toEqual(new Set(["close"]));
    },
    90_000,
  );

  it("refuses new connections while it finishes what is under way", () =>
    withFolder(async (folder) => {
      const { port, firstKey, process } = await start({ DATA_DIR: folder });
      const slow = connect(port, "127.0.0.1");
      const body = '{"name":""}';
      slow.write(
        `POST /applications HTTP/1.1\r\nhost: a\r\nsvc-api-key: ${firstKey}\r\nexpect: 100-continue\r\n` +
          `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`,
      );
      await once(slow, "data");
      process.child.kill("SIGTERM");
      await process.until(/stopping on SIGTERM/);
      await until(() => isRefused(port), longestStop);

      slow.write(body);
      const [answer] = await once(slow, "data");
      expect(String(answer)).toMatch(/^HTTP\/1.1 400 .*\r\nConnection: close\r\n/is);
      expect(await process.ended()).toBe(0);
    }));
});

import { once } from "node:events";
import { connect } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "@jest/globals";
import { withFolder } from "../support/process.js";
import { useServices } from "../support/service-process.js";
import { callUntilRefused } from "./support/draining-load.js";

/** Within which a service stops that is told to, in milliseconds. */
const longestStop = 15_000;

const start = useServices();

/** The moments at which it is told to stop differ, as much of what may go wrong lasts but a moment. */
const rounds = [
  ["1", 400],
  ["1", 650],
  ["2", 500],
  ["2", 850],
] as const;

describe("a service under load that is told to stop", () => {
  it.each(rounds)(
    "answers all that was sent to it, with WORKERS=%s after %i ms, then ends with 0",
    (workers, after) =>
      withFolder(async (folder) => {
        const { url, firstKey, process } = await start({ DATA_DIR: folder, WORKERS: workers });
        const stop = { at: Number.POSITIVE_INFINITY };
        const load = callUntilRefused({ url, key: firstKey }, stop);
        await delay(after);
        stop.at = performance.now();
        process.child.kill("SIGTERM");
        const { dropped, answers, lastWords } = await load;
        expect(await process.ended()).toBe(0);
        expect(performance.now() - stop.at).toBeLessThan(longestStop);

        expect(dropped).toEqual([]);
        expect(Object.keys(answers).sort()).toEqual(["HTTP 200", "HTTP 201", "gRPC 0"]);
        expect(new Set(lastWords)).toEqual(new Set(["close"]));
        expect(process.output.stdout).toContain('"msg":"stopped"');
      }),
    60_000,
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
      await delay(100);
      const late = connect(port, "127.0.0.1");
      const [error] = await once(late, "error");
      expect(error).toMatchObject({ code: "ECONNREFUSED" });

      slow.write(body);
      const [answer] = await once(slow, "data");
      expect(String(answer)).toMatch(/^HTTP\/1.1 400 .*\r\nConnection: close\r\n/is);
      expect(await process.ended()).toBe(0);
    }));
});

import { spawn } from "node:child_process";
import { once } from "node:events";
import type { Readable } from "node:stream";

/** Heap usage in bytes and counts of created objects, per request. */
export interface AllocationStats {
  readonly allocated: number;
  /** Bytes that survived the young generation, including garbage. */
  readonly promoted: number;
  /** Bytes that are still in use after a full garbage collection. */
  readonly retained: number;
  readonly timers: number;
  readonly abortControllers: number;
  readonly headers: number;
}

/** A child process that reports its allocations. */
export interface ProfiledProcess {
  /** Resolves when the output matches. */
  until(pattern: RegExp): Promise<RegExpExecArray>;
  /** Runs a load of `count` requests against the process and returns the allocations per request. */
  profile(load: (count: number) => Promise<void>, count: number): Promise<AllocationStats>;
  kill(): void;
}

/**
 * The young generation is large enough for hundreds of calls, so that short-lived
 * buffers such as pending log lines are not promoted.
 */
const heapFlags = ["--expose-gc", "--min-semi-space-size=8", "--max-semi-space-size=8"];
const profilerFlags = ["--import", "./test/transport/allocations/heap-profiler.mjs"];

/** Runs a JavaScript program with the heap profiler loaded. */
export function startProfiledProcess(
  program: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): ProfiledProcess {
  const { PATH = "" } = process.env;
  const child = spawn(process.execPath, [...heapFlags, ...profilerFlags, ...program], {
    env: { PATH, ...environment },
    stdio: ["ignore", "pipe", "pipe", "ipc"],
  });
  let output = "";
  const appendOutput = (text: Buffer) => {
    output += text;
  };
  const streams = [child.stdout, child.stderr] as Readable[];
  for (const stream of streams) {
    stream.on("data", appendOutput);
  }

  async function sendCommand(command: "start" | "stop"): Promise<unknown> {
    child.send(command);
    const [reply] = await once(child, "message");
    return reply;
  }

  return {
    async until(pattern) {
      for (;;) {
        const match = pattern.exec(output);
        if (match) {
          return match;
        }
        await Promise.race(streams.map((stream) => once(stream, "data")));
      }
    },

    async profile(load, count) {
      // Discards the output: a full pipe would block the process.
      child.stdout?.removeListener("data", appendOutput).resume();
      await sendCommand("start");
      await load(count);
      const totals = (await sendCommand("stop")) as AllocationStats;
      const perRequest = Object.entries(totals).map(([name, value]) => [name, value / count]);
      return Object.fromEntries(perRequest);
    },

    kill: () => void child.kill("SIGKILL"),
  };
}

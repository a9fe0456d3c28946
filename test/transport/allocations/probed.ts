import { spawn } from "node:child_process";
import { once } from "node:events";

/** What a process took of the heap, in bytes, and made, while it served. */
export interface Spent {
  /** All that was allocated. */
  readonly allocated: number;
  /** What outlived the young generation, whether it was needed or not. */
  readonly promoted: number;
  /** What is still there when all garbage is gone. */
  readonly retained: number;
  readonly timers: number;
  readonly abortControllers: number;
  readonly headers: number;
}

/** A process that can be asked what it spends. */
export interface Probed {
  /** Resolves when its output matches. */
  until(pattern: RegExp): Promise<RegExpExecArray>;
  /** Puts a load on it, and answers what it spent on each of so many requests. */
  spentOn(load: (count: number) => Promise<void>, count: number): Promise<Spent>;
  kill(): void;
}

/**
 * The young generation is large enough for hundreds of calls, so that what is
 * gathered for a moment, lines of the log say, does not outlive it.
 */
const flags = ["--expose-gc", "--min-semi-space-size=8", "--max-semi-space-size=8"];
const probe = ["--import", "./test/transport/allocations/heap-probe.mjs"];

/** Runs a program of JavaScript with the probe in it. */
export function startProbed(
  program: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Probed {
  const { PATH = "" } = process.env;
  const child = spawn(process.execPath, [...flags, ...probe, ...program], {
    env: { PATH, ...environment },
    stdio: ["ignore", "pipe", "inherit", "ipc"],
  });
  let output = "";
  const keep = (text: Buffer) => {
    output += text;
  };
  child.stdout?.on("data", keep);

  async function tell(order: "start" | "stop"): Promise<unknown> {
    child.send(order);
    const [answer] = await once(child, "message");
    return answer;
  }

  return {
    async until(pattern) {
      for (;;) {
        const match = pattern.exec(output);
        if (match) {
          return match;
        }
        await once(child.stdout as NonNullable<typeof child.stdout>, "data");
      }
    },

    async spentOn(load, count) {
      // What it logs is read and dropped: a pipe that is full would stop it.
      child.stdout?.removeListener("data", keep).resume();
      await tell("start");
      await load(count);
      const spent = (await tell("stop")) as Spent;
      const each = Object.entries(spent).map(([name, value]) => [name, value / count]);
      return Object.fromEntries(each);
    },

    kill: () => void child.kill("SIGKILL"),
  };
}

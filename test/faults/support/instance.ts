import { reservePorts } from "../../support/service/ports.js";
import type { CapturedProcess } from "../../support/service/run-latchkey.js";
import { startService } from "../../support/service/service-process.js";
import { killGroup } from "./embedded-service.js";

/** An instance in its own process, which restarts at the same address. */
export interface Instance {
  readonly name: string;
  readonly url: string;
  /** The errors that its processes logged, over all restarts. */
  loggedErrors(): string[];
  isRunning(): boolean;
  start(): Promise<void>;
  /** Kills it with all its workers. */
  kill(): Promise<void>;
  stop(): Promise<void>;
}

export async function startInstance(
  name: string,
  environment: Readonly<Record<string, string>>,
): Promise<Instance> {
  const runs: CapturedProcess[] = [];
  const [port] = await reservePorts(1);

  async function start(): Promise<string> {
    const PORT = String(port);
    const settings = { ...environment, PORT, LOG_LEVEL: "info" };
    // In its own process group, which can be killed at once.
    const { url, process } = await startService(settings, { detached: true });
    runs.push(process);
    return url;
  }

  const url = await start();
  return {
    name,
    url,
    isRunning: () => runs.at(-1)?.child.signalCode === null,
    start: async () => void (await start()),

    async kill() {
      const run = runs.at(-1);
      await (run && killGroup(run));
    },

    async stop() {
      const run = runs.at(-1);
      run?.child.kill("SIGTERM");
      await run?.ended();
    },

    loggedErrors: () =>
      runs.flatMap(({ output }) => [
        ...output.stdout.split("\n").filter((line) => /"level":"(error|fatal)"/.test(line)),
        ...output.stderr.split("\n").filter((line) => line !== ""),
      ]),
  };
}

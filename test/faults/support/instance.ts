import { lastingPorts } from "../../support/lasting-ports.js";
import { type LatchkeyProcess, runLatchkey } from "../../support/process.js";
import { startService } from "../../support/service-process.js";

/** An instance of the service in a process of its own, which comes back under the same address. */
export interface Instance {
  readonly name: string;
  readonly url: string;
  /** All that its processes wrote about what went wrong on our side. */
  complaints(): string[];
  isRunning(): boolean;
  start(): Promise<void>;
  kill(): Promise<void>;
  stop(): Promise<void>;
}

export async function startInstance(
  name: string,
  environment: Readonly<Record<string, string>>,
): Promise<Instance> {
  const runs: LatchkeyProcess[] = [];
  const [port] = await lastingPorts(1);

  async function start(): Promise<string> {
    const PORT = String(port);
    const { url, process } = await startService({ ...environment, PORT, LOG_LEVEL: "info" });
    runs.push(process);
    return url;
  }

  async function end(signal: NodeJS.Signals): Promise<void> {
    const run = runs.at(-1);
    run?.child.kill(signal);
    await run?.ended();
  }

  const url = await start();
  return {
    name,
    url,
    isRunning: () => runs.at(-1)?.child.signalCode === null,
    start: async () => void (await start()),
    kill: () => end("SIGKILL"),
    stop: () => end("SIGTERM"),
    complaints: () =>
      runs.flatMap(({ output }) => [
        ...output.stdout.split("\n").filter((line) => /"level":(50|60)/.test(line)),
        ...output.stderr.split("\n").filter((line) => line !== ""),
      ]),
  };
}

/** Makes a tenant, and answers the key that may do everything in it. */
export async function bootstrapKey(environment: Readonly<Record<string, string>>): Promise<string> {
  const run = runLatchkey(["bootstrap", "--json"], environment);
  const code = await run.ended();
  if (code !== 0) {
    throw new Error(`bootstrap ended with ${code}: ${run.output.stderr}`);
  }
  return JSON.parse(run.output.stdout).key;
}

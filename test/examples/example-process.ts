import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { afterEach } from "@jest/globals";
import { killWithParent } from "../support/service/child-process.js";
import { type CapturedProcess, captureOutput } from "../support/service/run-latchkey.js";

/** The commands of a page below a label such as `<!-- tour: curl -->`, as one script. */
function scriptIn(page: string, label: string): string {
  const blocks = readFileSync(page, "utf8").matchAll(/<!-- (\w+: \w+) -->\n```sh\n(.*?)```/gs);
  const scripts = [...blocks].flatMap(([, name, script]) => (name === label ? [script] : []));
  if (scripts.length === 0) {
    throw new Error(`${page} has no commands with the label "${label}".`);
  }
  return scripts.join("\n");
}

/** Runs examples with the commands of their page, and stops them after the test. */
export function useExamples() {
  let running: CapturedProcess[] = [];

  afterEach(async () => {
    await Promise.all(running.map(stopExample));
    running = [];
  });

  return (name: string, environment: Readonly<Record<string, string>>): CapturedProcess => {
    const script = scriptIn("examples/README.md", `example: ${name}`);
    const child = spawn("bash", ["-euo", "pipefail", "-c", script], {
      env: { ...process.env, ...environment },
      // A process group, because commands start other processes.
      detached: true,
    });
    killWithParent(child, { group: true });
    const example = captureOutput(child);
    running.push(example);
    return example;
  };
}

/** Sends SIGINT to an example and its child processes, like Ctrl+C, and waits for the exit. */
export async function stopExample({ child, ended }: CapturedProcess): Promise<void> {
  if (child.pid && child.exitCode === null && child.signalCode === null) {
    process.kill(-child.pid, "SIGINT");
  }
  await ended();
}

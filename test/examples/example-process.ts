import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { afterEach } from "@jest/globals";
import { killWithParent } from "../support/service/child-process.js";
import { type CapturedProcess, captureOutput } from "../support/service/process.js";

/** The commands on a page that stand below a label, `<!-- tour: curl -->`, in order, as one script. */
export function scriptIn(page: string, label: string): string {
  const blocks = readFileSync(page, "utf8").matchAll(/<!-- (\w+: \w+) -->\n```sh\n(.*?)```/gs);
  const scripts = [...blocks].flatMap(([, name, script]) => (name === label ? [script] : []));
  if (scripts.length === 0) {
    throw new Error(`${page} has no commands that are labelled "${label}".`);
  }
  return scripts.join("\n");
}

/** Runs examples by the commands of their page, and ends those that outlive their test. */
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
      // A group of its own, as commands start others.
      detached: true,
    });
    killWithParent(child, { group: true });
    const example = captureOutput(child);
    running.push(example);
    return example;
  };
}

/** Ends an example as Ctrl+C does, with all that it started, and waits until it is gone. */
export async function stopExample({ child, ended }: CapturedProcess): Promise<void> {
  if (child.pid && child.exitCode === null && child.signalCode === null) {
    process.kill(-child.pid, "SIGINT");
  }
  await ended();
}

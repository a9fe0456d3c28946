import { spawn } from "node:child_process";
import { afterEach } from "@jest/globals";
import { dieWithUs } from "./guardian.js";
import { type FollowedProcess, followProcess } from "./process.js";
import { scriptIn } from "./script-in.js";

/** Runs examples by the commands of their page, and ends those that outlive their test. */
export function useExamples() {
  let running: FollowedProcess[] = [];

  afterEach(async () => {
    await Promise.all(running.map(stopExample));
    running = [];
  });

  return (name: string, environment: Readonly<Record<string, string>>): FollowedProcess => {
    const script = scriptIn("examples/README.md", `example: ${name}`);
    const child = spawn("bash", ["-euo", "pipefail", "-c", script], {
      env: { ...process.env, ...environment },
      // A group of its own, as commands start others.
      detached: true,
    });
    dieWithUs(child, { group: true });
    const example = followProcess(child);
    running.push(example);
    return example;
  };
}

/** Ends an example as Ctrl+C does, with all that it started, and waits until it is gone. */
export async function stopExample({ child, ended }: FollowedProcess): Promise<void> {
  if (child.pid && child.exitCode === null && child.signalCode === null) {
    process.kill(-child.pid, "SIGINT");
  }
  await ended();
}

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { renameSync } from "node:fs";
import type { Socket } from "node:net";
import { join } from "node:path";
import { afterEach } from "@jest/globals";

/**
 * Sees to it that a process dies with this one, however that ends: a shell
 * waits at a pipe, which the system closes when this process is gone. Of a
 * process that leads a group, the whole group.
 */
export function killWithParent(child: ChildProcess, { group = false } = {}): void {
  const target = group ? `-${child.pid}` : child.pid;
  const guardian = spawn("sh", ["-c", `read -r _; kill -9 ${target}`], {
    stdio: ["pipe", "ignore", "ignore"],
  });
  guardian.unref();
  (guardian.stdin as Socket).unref();
  // Its number may go to another process then.
  child.once("exit", () => guardian.kill("SIGKILL"));
}

/** The command that runs a TypeScript file in another process. `script` is its path from the project's root. */
export function scriptCommand(script: string, ...args: string[]): [string, string[]] {
  return [process.execPath, ["--import", "tsx", script, ...args]];
}

/**
 * Bundles a TypeScript file into one script, which starts three times as fast, and returns
 * the command that runs it. Not for scripts that load files by relative path.
 */
export function bundleScript(script: string): (...args: string[]) => [string, string[]] {
  // Below node_modules, so that it finds packages.
  const file = join(
    "node_modules",
    ".cache",
    "latchkey",
    script.replaceAll("/", "-").replace(/\.ts$/, ".mjs"),
  );
  const aside = `${file}.${process.pid}`;
  execFileSync(join("node_modules", ".bin", "esbuild"), [
    script,
    ...["--bundle", "--platform=node", "--format=esm", "--packages=external"],
    ...["--log-level=warning", `--outfile=${aside}`],
  ]);
  // Others may be running it.
  renameSync(aside, file);
  return (...args) => [process.execPath, [file, ...args]];
}

/** A process that tells what it does in lines of JSON. */
type TellingChild = ReturnType<typeof startChild>;

export function startChild([command, args]: [string, string[]]) {
  const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
  killWithParent(child);
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text) => {
    output += text;
  });
  let hasEnded = false;
  const closed = once(child, "close").then(() => {
    hasEnded = true;
  });

  return {
    /** All that it has told so far. */
    lines() {
      const whole = output.split("\n").slice(0, -1);
      return whole.map((line) => JSON.parse(line));
    },

    /** What it tells in a line, as soon as it does. */
    async line(index: number) {
      while (this.lines().length <= index) {
        if (hasEnded) {
          throw new Error(`It has ended with ${child.exitCode ?? child.signalCode}.`);
        }
        await Promise.race([once(child.stdout, "data"), closed]);
      }
      return this.lines()[index];
    },

    write(text: string): void {
      child.stdin.write(text);
    },

    /** Has nothing more to say to it, and waits until it goes. */
    async end(): Promise<void> {
      child.stdin.end();
      await closed;
    },

    async kill(): Promise<void> {
      child.kill("SIGKILL");
      await closed;
    },
  };
}

/** Starts such processes, and kills those that outlive their test. */
export function useChildren() {
  let running: TellingChild[] = [];

  afterEach(async () => {
    await Promise.all(running.map((child) => child.kill()));
    running = [];
  });

  return function start(command: [string, string[]]): TellingChild {
    const child = startChild(command);
    running.push(child);
    return child;
  };
}

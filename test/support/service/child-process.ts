import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { renameSync } from "node:fs";
import type { Socket } from "node:net";
import { join } from "node:path";
import { afterEach } from "@jest/globals";

/**
 * Kills a process, or its process group, when this process exits for any reason. A shell
 * waits on a pipe that the system closes at exit.
 */
export function killWithParent(child: ChildProcess, { group = false } = {}): void {
  const target = group ? `-${child.pid}` : child.pid;
  const watchdog = spawn("sh", ["-c", `read -r _; kill -9 ${target}`], {
    stdio: ["pipe", "ignore", "ignore"],
    // A signal to the process group of this process must not end it, too.
    detached: true,
  });
  watchdog.unref();
  (watchdog.stdin as Socket).unref();
  // The system may reuse the process id.
  child.once("exit", () => watchdog.kill("SIGKILL"));
}

/** Returns the command that runs a TypeScript file, given by its path from the project root. */
export function scriptCommand(script: string, ...args: string[]): [string, string[]] {
  return [process.execPath, ["--import", "tsx", script, ...args]];
}

/**
 * Bundles a TypeScript file into one script, which starts three times as fast, and returns
 * the command that runs it. Not for scripts that load files by relative path.
 */
export function bundleScript(script: string): (...args: string[]) => [string, string[]] {
  // In node_modules, so that it can import packages.
  const file = join(
    "node_modules",
    ".cache",
    "latchkey",
    script.replaceAll("/", "-").replace(/\.ts$/, ".mjs"),
  );
  const temporaryFile = `${file}.${process.pid}`;
  execFileSync(join("node_modules", ".bin", "esbuild"), [
    script,
    "--bundle",
    "--platform=node",
    "--format=esm",
    "--packages=external",
    "--log-level=warning",
    `--outfile=${temporaryFile}`,
  ]);
  // Atomic, because other tests may be running it.
  renameSync(temporaryFile, file);
  return (...args) => [process.execPath, [file, ...args]];
}

/** A process that writes JSON lines to stdout. */
type JsonLinesChild = ReturnType<typeof startChild>;

export function startChild([command, args]: [string, string[]]) {
  const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
  killWithParent(child);
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text) => {
    output += text;
  });
  let hasExited = false;
  const closed = once(child, "close").then(() => {
    hasExited = true;
  });

  return {
    /** The lines so far, parsed. */
    lines() {
      const complete = output.split("\n").slice(0, -1);
      return complete.map((line) => JSON.parse(line));
    },

    /** Waits for a line and returns it, parsed. */
    async line(index: number) {
      while (this.lines().length <= index) {
        if (hasExited) {
          throw new Error(`The process exited with ${child.exitCode ?? child.signalCode}.`);
        }
        await Promise.race([once(child.stdout, "data"), closed]);
      }
      return this.lines()[index];
    },

    write(text: string): void {
      child.stdin.write(text);
    },

    /** Closes stdin and waits until the process exits. */
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

/** Starts processes and kills those still running after their test. */
export function useChildren() {
  let running: JsonLinesChild[] = [];

  afterEach(async () => {
    await Promise.all(running.map((child) => child.kill()));
    running = [];
  });

  return function start(command: [string, string[]]): JsonLinesChild {
    const child = startChild(command);
    running.push(child);
    return child;
  };
}

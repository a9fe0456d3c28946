import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll } from "@jest/globals";
import { runLatchkey } from "../support/process.js";
import { runHere } from "./run-here.js";

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** What a command has beside its arguments. */
export interface Given {
  readonly environment?: Readonly<Record<string, string>>;
  /** What it reads from stdin. */
  readonly input?: string;
}

/** Runs commands to their end, for a user who has a folder of settings. */
export function useCli() {
  let folder: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "latchkey-cli-"));
  });

  afterAll(() => rm(folder, { recursive: true, force: true }));

  return {
    /** A file in the folder of the user. */
    path: (name: string) => join(folder, name),

    environment: (more: Readonly<Record<string, string>> = {}) => ({
      XDG_CONFIG_HOME: folder,
      ...more,
    }),

    async run(args: readonly string[], { environment, input = "" }: Given = {}): Promise<Ended> {
      const { child, ended, output } = runLatchkey(args, this.environment(environment));
      // It may end before it has read all of it.
      child.stdin?.on("error", () => {});
      child.stdin?.end(input);
      return { code: await ended(), ...output };
    },

    /** The same in this process, which takes less time, and without a stdin. */
    runHere(args: readonly string[], environment: Given["environment"] = {}): Promise<Ended> {
      return runHere(args, this.environment(environment));
    },
  };
}

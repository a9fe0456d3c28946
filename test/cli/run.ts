import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll } from "@jest/globals";
import { runLatchkey } from "../support/service/process.js";
import { runHere } from "./run-here.js";

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The environment and input of a command. */
export interface Given {
  readonly environment?: Readonly<Record<string, string>>;
  /** The content of stdin. */
  readonly input?: string;
}

/** Runs commands for a user with a configuration folder of their own. */
export function useCli() {
  let folder: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "latchkey-cli-"));
  });

  afterAll(() => rm(folder, { recursive: true, force: true }));

  return {
    /** The path of a file in that folder. */
    path: (name: string) => join(folder, name),

    environment: (more: Readonly<Record<string, string>> = {}) => ({
      XDG_CONFIG_HOME: folder,
      ...more,
    }),

    async run(args: readonly string[], { environment, input = "" }: Given = {}): Promise<Ended> {
      const { child, ended, output } = runLatchkey(args, this.environment(environment));
      // The command may exit before it has read everything.
      child.stdin?.on("error", () => {});
      child.stdin?.end(input);
      return { code: await ended(), ...output };
    },

    /** The same in this process, which is faster, and without stdin. */
    runHere(args: readonly string[], environment: Given["environment"] = {}): Promise<Ended> {
      return runHere(args, this.environment(environment));
    },
  };
}

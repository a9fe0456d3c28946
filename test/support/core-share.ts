import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { afterAll, beforeAll } from "@jest/globals";

/** Tells which share of a core a bystander has got since this was asked last: all of it where nobody else wants it. */
export type CoreShare = () => Promise<number>;

/** Measures during the tests of a file. */
export function useCoreShare(): CoreShare {
  let bystander: ChildProcess;

  beforeAll(async () => {
    bystander = fork("test/support/core-share-child.mjs", { execArgv: [] });
    await once(bystander, "message");
  });

  afterAll(() => void bystander.kill());

  return async () => {
    bystander.send("tell");
    const [share] = await once(bystander, "message");
    return share;
  };
}

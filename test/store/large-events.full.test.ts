import { describe, expect, it } from "@jest/globals";
import { useLmdbFolder } from "../support/lmdb/folder.js";
import { useMongo } from "../support/mongo/mongo.js";
import { longTimeoutUri } from "../support/mongo/uri.js";
import { bundleScript, useChildren } from "../support/service/child-process.js";

const start = useChildren();
const folder = useLmdbFolder();
const { createDatabase } = useMongo();
const runScript = bundleScript("test/store/large-events-child.ts");

/** The heap limit in megabytes, which is less than the size of the followed events. */
const heapLimit = 60;

describe("a process with little memory", () => {
  it.each([
    ["LMDB", () => ["lmdb", folder.path()]],
    ["MongoDB", () => ["mongo", longTimeoutUri, createDatabase().databaseName]],
  ])(
    "writes, follows, lists and exports large events in %s",
    async (_, getArguments) => {
      const [command, args] = runScript(...getArguments());
      const child = start([command, [`--max-old-space-size=${heapLimit}`, ...args]]);
      expect(await child.line(0)).toEqual({
        received: 60,
        receivedAfterResume: 60,
        listed: 60,
        listedOfUnusedKind: 0,
        exported: 120,
      });
    },
    600_000,
  );
});

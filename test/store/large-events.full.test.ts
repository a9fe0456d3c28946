import { describe, expect, it } from "@jest/globals";
import { useLmdbFolder } from "../support/lmdb/folder.js";
import { useMongo } from "../support/mongo/mongo.js";
import { uri } from "../support/mongo/uri.js";
import { scriptCommand, useChildren } from "../support/service/child-process.js";

const start = useChildren();
const folder = useLmdbFolder();
const { createDatabase } = useMongo();

/** Megabytes of heap: fewer than the events take that are told, let alone all that are there. */
const littleMemory = 70;

describe("a process with little memory", () => {
  it.each([
    ["LMDB", () => ["lmdb", folder.path()]],
    ["MongoDB", () => ["mongo", uri, createDatabase().databaseName]],
  ])(
    "writes, follows, lists and exports large events in %s",
    async (_, placeOf) => {
      const [command, args] = scriptCommand("test/store/large-events-child.ts", ...placeOf());
      const child = start([command, [`--max-old-space-size=${littleMemory}`, ...args]]);
      expect(await child.line(0)).toEqual({
        told: 60,
        toldAgain: 60,
        listed: 60,
        listedOfNone: 0,
        exported: 120,
      });
    },
    600_000,
  );
});

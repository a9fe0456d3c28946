import { setImmediate } from "node:timers/promises";
import { describe, expect, it } from "@jest/globals";
import type { ConnectionUse } from "../src/store/store.js";
import { scrape } from "./support/exposition.js";
import { uri, useMongo } from "./support/mongo.js";
import { startServer } from "./support/server.js";

const { createDatabase, open } = useMongo();

describe("the connections of a store in MongoDB", () => {
  it("are in use or waited for until calls are answered", async () => {
    const narrow = new URL(uri);
    narrow.searchParams.set("maxPoolSize", "1");
    const store = await open(createDatabase(), { uri: narrow.href });
    const calls = Array.from({ length: 10 }, store.now);
    let isDone = false;
    const done = Promise.all(calls).finally(() => {
      isDone = true;
    });
    const seen: (ConnectionUse | undefined)[] = [];
    while (!isDone) {
      seen.push(store.connections?.());
      await setImmediate();
    }
    await done;
    expect(seen).toContainEqual({ inUse: 1, waiting: 9 });
    expect(store.connections?.()).toEqual({ inUse: 0, waiting: 0 });
  });

  it("are told by the metrics", async () => {
    const server = await startServer("lmdb", { store: await open(createDatabase()) });
    const { samples } = await scrape(server);
    await server.close();
    const told = samples.filter(({ name }) => name === "latchkey_store_connections");
    expect(told.map(({ labels }) => labels.state)).toEqual(["in_use", "waiting"]);
  });
});

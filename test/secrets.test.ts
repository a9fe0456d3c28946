import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-web";
import { describe, expect, it } from "@jest/globals";
import { MongoClient } from "mongodb";
import type { Api } from "./support/api.js";
import { createConnectApi } from "./support/api-connect.js";
import { createGrpcApi } from "./support/api-grpc.js";
import { createRestApi } from "./support/api-rest.js";
import { liveThrough, refused, wrongKeys } from "./support/full-life.js";
import { send } from "./support/http.js";
import { misplace } from "./support/misplaced-keys.js";
import { type Mongod, startMongod } from "./support/mongod.js";
import { type LatchkeyProcess, runLatchkey, withFolder } from "./support/process.js";
import {
  decoded,
  type Run,
  recorded,
  textOf,
  type Written,
  whileWatching,
} from "./support/recorded-run.js";
import { createSecretFinder } from "./support/secret-finder.js";
import { useServices } from "./support/service-process.js";
import { until } from "./support/until.js";

/** Does everything over every protocol. */
async function useAll(run: Run): Promise<void> {
  const { url: baseUrl, port, root, finder, written } = run;
  const grpc = recorded("gRPC", createGrpcApi(`127.0.0.1:${port}`), run);
  const apis: [string, Api][] = [
    ["REST", recorded("REST", createRestApi(baseUrl), run)],
    ["Connect", recorded("Connect", createConnectApi(createConnectTransport({ baseUrl })), run)],
    ["gRPC-Web", recorded("gRPC-Web", createConnectApi(createGrpcWebTransport({ baseUrl })), run)],
    ["gRPC", grpc],
  ];
  await whileWatching(grpc, run, "gRPC", async () => {
    for (const [, api] of apis) {
      await liveThrough(api, root);
      for (const wrong of wrongKeys(root)) {
        finder.add(wrong);
        await refused(api.whoAmI(wrong));
        await api.checkAccess(root, { key: wrong, permission: "token:read" }).catch(() => {});
      }
    }
    const mine = await apis[0]?.[1].createApplication(root, {
      ...{ name: "Misplaced", type: "private", permissions: ["token:read"] },
    });
    await misplace(mine?.key ?? "", run);
    await misplace(wrongKeys(root)[0] as string, run);
    for (const path of ["/openapi.json", "/healthz", "/readyz", "/metrics", "/"]) {
      written.push([path, textOf(await send(run, path))]);
    }
    // The validator keeps the last text that broke a rule, until the next one does.
    await send(run, "/applications/none", { headers: { "svc-api-key": root } });
    // Refused calls are told in the trail a little later.
    await delay(1_500);
    written.push(["the trail", textOf(await grpc.listEvents(root))]);
  });
  grpc.close();
}

/** What Linux tells everybody of a process. */
async function shownOf({ child }: LatchkeyProcess): Promise<Written> {
  const files = ["cmdline", "comm", "status"].map((name) => `/proc/${child.pid}/${name}`);
  const there = files.filter((path) => existsSync(path));
  return Promise.all(
    there.map(async (path): Promise<Written[number]> => [path, await readFile(path)]),
  );
}

async function filesIn(folder: string): Promise<Written> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  return Promise.all(
    files.map(async ({ parentPath, name }): Promise<Written[number]> => {
      const file = join(parentPath, name);
      return [file, withoutRoom(await readFile(file))];
    }),
  );
}

/** Databases make files larger than they need them yet, some by a hundred megabytes. */
function withoutRoom(bytes: Buffer): Buffer {
  const nothing = Buffer.alloc(64 * 1024);
  let end = bytes.length;
  while (end >= nothing.length && bytes.subarray(end - nothing.length, end).equals(nothing)) {
    end -= nothing.length;
  }
  return bytes.subarray(0, end);
}

/** All documents as the database gives them, its log of changes and images of before included, and its files. */
async function storedIn({ uri }: Mongod): Promise<Written> {
  const client = await new MongoClient(uri, { readPreference: "primary" }).connect();
  try {
    const admin = client.db("admin");
    const { databases } = await admin.admin().listDatabases();
    const written: Written = [];
    for (const { name } of databases) {
      const db = client.db(name);
      for (const collection of await db.listCollections({ type: "collection" }).toArray()) {
        const all = db.collection(collection.name).find({}, { raw: true });
        const documents = (await all.toArray()) as unknown as Buffer[];
        written.push([`${name}.${collection.name}`, Buffer.concat(documents)]);
      }
    }
    await admin.command({ fsync: 1 });
    const { parsed } = await admin.command({ getCmdLineOpts: 1 });
    return [...written, ...(await filesIn(parsed.storage.dbPath))];
  } finally {
    await client.close();
  }
}

const start = useServices();

/** Runs a service through everything, and answers where secrets are found. */
async function leaksOf(
  store: Record<string, string>,
  stored: () => Promise<Written>,
  heapOf: (service: LatchkeyProcess) => Promise<Written> = async () => [],
): Promise<string[]> {
  const first = runLatchkey(["bootstrap", "--json"], store);
  await first.ended();
  const { key: root } = JSON.parse(first.output.stdout);
  const { url, port, process: service } = await start({ ...store, LOG_LEVEL: "trace" });
  const finder = createSecretFinder();
  finder.add(root);
  const run: Run = { url, port, root, finder, written: [] };
  await useAll(run);
  run.written.push(...(await shownOf(service)), ...(await heapOf(service)));
  service.child.kill("SIGTERM");
  expect(await service.ended()).toBe(0);
  const { stdout, stderr } = service.output;
  expect(stdout.split("\n").length).toBeGreaterThan(200);
  const inStore = await stored();
  // What is no secret is there: this is where they would be.
  expect(inStore.some(([, what]) => what.includes("Misplaced"))).toBe(true);
  run.written.push(["stdout", decoded(stdout)], ["stderr", decoded(stderr)], ...inStore);
  return run.written.flatMap(([where, what]) =>
    finder.find(what).map((secret) => `${where}: ${secret}`),
  );
}

describe("after all was done that can be done, no key or nonce is anywhere", () => {
  it(
    "in what was written on the embedded store, nor in memory",
    () =>
      withFolder(async (folder) => {
        const HEAP_SNAPSHOT = join(folder, "heap");
        const DATA_DIR = join(folder, "store");
        const NODE_OPTIONS = "--import ./test/support/heap-snapshot.mjs";
        const leaks = await leaksOf(
          { DATA_DIR, HEAP_SNAPSHOT, NODE_OPTIONS },
          () => filesIn(DATA_DIR),
          async ({ child }) => {
            // What waits to be told or written has gone after two seconds.
            await delay(2_000);
            child.kill("SIGUSR2");
            await until(async () => existsSync(HEAP_SNAPSHOT), 30_000);
            return [["the heap", await readFile(HEAP_SNAPSHOT)]];
          },
        );
        expect(leaks).toEqual([]);
      }),
    90_000,
  );

  it("in what was written on MongoDB", async () => {
    const mongod = await startMongod();
    try {
      expect(await leaksOf({ MONGODB_URI: mongod.uri }, () => storedIn(mongod))).toEqual([]);
    } finally {
      await mongod.stop();
    }
  }, 90_000);
});

import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { describe, expect, it, jest } from "@jest/globals";
import { MongoClient } from "mongodb";
import { keyOf, type StreamedCheck, type StreamingApi } from "../support/api/api.js";
import { createConnectApi } from "../support/api/connect.js";
import { createGrpcApi } from "../support/api/grpc.js";
import { createRestApi } from "../support/api/rest.js";
import { send } from "../support/http/http.js";
import { type Mongod, startMongod } from "../support/mongo/mongod.js";
import { runLatchkey, withTempFolder } from "../support/service/process.js";
import { useServices } from "../support/service/service-process.js";
import { hangTimeout, until } from "../support/until.js";
import { callEveryMethod, invalidKeys, refused } from "./support/api-calls.js";
import { sendMisplacedKeys } from "./support/misplaced-keys.js";
import { createProcessInspector } from "./support/process-inspector.js";
import {
  decoded,
  type Run,
  recorded,
  recordMessages,
  textOf,
  type Written,
  withWatchers,
} from "./support/recording.js";
import { createSecretFinder, type SecretFinder } from "./support/secret-finder.js";

jest.setTimeout(4 * hangTimeout);

/** Does everything over every protocol. */
async function useAll(run: Run): Promise<void> {
  const { url: baseUrl, port, root, finder, written } = run;
  const rest = recorded("REST", createRestApi(baseUrl), run);
  const grpc = recorded("gRPC", createGrpcApi(`127.0.0.1:${port}`), run);
  const ofTransport = (name: string, transport: Transport): [string, StreamingApi] => [
    name,
    recorded(name, createConnectApi(transport), run),
  ];
  const streaming: [string, StreamingApi][] = [
    ["gRPC", grpc],
    ofTransport("Connect", createConnectTransport({ baseUrl, httpVersion: "1.1" })),
    ofTransport("gRPC-Web", createGrpcWebTransport({ baseUrl, httpVersion: "1.1" })),
  ];
  await withWatchers(streaming, run, async () => {
    for (const api of [rest, ...streaming.map(([, api]) => api)]) {
      await callEveryMethod(api, root);
      for (const wrong of invalidKeys(root)) {
        finder.add(wrong);
        await refused(api.whoAmI(wrong));
        await api.checkAccess(root, { key: wrong, permission: "token:read" }).catch(() => {});
      }
    }
    const make = (type: string) =>
      rest.createApplication(root, { name: "Misplaced", type, permissions: ["token:read"] });
    const mine = keyOf(await make("private"));
    const { sessionKey, nonce } = await rest.createSession(keyOf(await make("public")));
    const secrets = [mine, sessionKey, nonce, invalidKeys(mine)[0] as string];
    await Promise.all(secrets.map((secret) => sendMisplacedKeys(secret, run)));
    await recordMessages("gRPC", grpc.streamCheckAccess(root, checksOf(secrets), unending), run);
    for (const path of ["/openapi.json", "/healthz", "/readyz", "/metrics", "/"]) {
      written.push([path, textOf(await send(run, path))]);
    }
    // Refused calls are written to the trail a little later.
    const denials = { kind: "access.denied" };
    await until(async () => (await grpc.listEvents(root, denials)).data.length > 0);
    written.push(["the trail", textOf(await grpc.listEvents(root))]);
  });
  grpc.close();
}

const unending = new AbortController().signal;

async function* checksOf(keys: readonly string[]): AsyncGenerator<StreamedCheck> {
  for (const [at, key] of [...keys, ...keys.map((one) => `${one} `)].entries()) {
    yield { correlationId: String(at), check: { key, permission: "token:read" } };
  }
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
  folder: string,
  store: Readonly<Record<string, string>>,
  stored: () => Promise<Written>,
): Promise<string[]> {
  const first = runLatchkey(["bootstrap", "--json"], store);
  await first.ended();
  const { key: root } = JSON.parse(first.output.stdout);
  const seen = createProcessInspector(folder);
  const service = await start({ ...store, ...seen.environment, LOG_LEVEL: "trace" });
  const finder = createSecretFinder();
  finder.add(root);
  const run: Run = { url: service.url, port: service.port, root, finder, written: [] };
  await useAll(run);
  const heaps = await heapsAtRest(run, () => seen.heaps(service.process));
  run.written.push(...(await seen.shown(service.process)));
  service.process.child.kill("SIGTERM");
  expect(await service.process.ended()).toBe(0);
  const { stdout, stderr } = service.process.output;
  expect(stdout.split("\n").length).toBeGreaterThan(200);
  run.written.push(
    ["stdout", decoded(stdout)],
    ["stderr", decoded(stderr)],
    ["stderr of bootstrap", first.output.stderr],
    ...(await seen.spans()),
    ...(await stored()),
  );
  mustHaveLooked([...run.written, ...heaps.written], store);
  return [...leaksIn(run.written, finder), ...heaps.leaks];
}

function leaksIn(written: Written, finder: SecretFinder): string[] {
  return written.flatMap(([where, what]) =>
    finder.find(what).map((secret) => `${where}: ${secret}`),
  );
}

/** Reads the heaps of all processes until what waited to be written has gone, or is there for good. */
async function heapsAtRest(run: Run, read: () => Promise<Written>) {
  const deadline = performance.now() + hangTimeout;
  for (;;) {
    // The validator keeps the last text that broke a rule until the next one does: in each worker, and these get connections in turn.
    for (let time = 0; time < 4; time++) {
      await send(run, "/applications/none", { headers: { "svc-api-key": run.root } });
    }
    const written = await read();
    const leaks = leaksIn(written, run.finder);
    if (leaks.length === 0 || performance.now() > deadline) {
      return { written, leaks };
    }
  }
}

/** What is no secret is there: this is where secrets would be. */
function mustHaveLooked(written: Written, { WORKERS = "1" }: Readonly<Record<string, string>>) {
  const processes = WORKERS === "1" ? 1 : Number(WORKERS) + 1;
  const among = (place: RegExp, text: string) =>
    written.filter(([where, what]) => place.test(where) && what.includes(text)).length;
  expect(among(/cmdline$/, "")).toBe(processes);
  expect(among(/heap\.\d+$/, "latchkey")).toBe(processes);
  for (const protocol of ["http.route", "connect_rpc", "rpc.grpc.status_code"]) {
    expect(among(/spans\.\d+$/, protocol)).toBe(Number(WORKERS));
  }
  expect(among(/^(?!.*(heap|spans)).*(data\.mdb|applications)/, "Misplaced")).toBeGreaterThan(0);
}

describe("after every method was called, no key or nonce appears in files, logs, traces, memory or the process list", () => {
  it("on the embedded store", () =>
    withTempFolder(async (folder) => {
      const DATA_DIR = join(folder, "store");
      expect(await leaksOf(folder, { DATA_DIR }, () => filesIn(DATA_DIR))).toEqual([]);
    }));

  it("on MongoDB, with workers that share counts", () =>
    withTempFolder(async (folder) => {
      const mongod = await startMongod();
      try {
        const store = { MONGODB_URI: mongod.uri, WORKERS: "2", RATE_LIMIT_SCOPE: "shared" };
        expect(await leaksOf(folder, store, () => storedIn(mongod))).toEqual([]);
      } finally {
        await mongod.stop();
      }
    }));
});

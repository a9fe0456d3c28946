import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { describe, expect, it, jest } from "@jest/globals";
import { MongoClient } from "mongodb";
import { keyOf, type StreamingApi } from "../support/api/api.js";
import type { StreamedCheck } from "../support/api/checks.js";
import { createConnectApi } from "../support/api/connect.js";
import { createGrpcApi } from "../support/api/grpc.js";
import { createRestApi } from "../support/api/rest.js";
import { send } from "../support/http/http.js";
import { type Mongod, startMongod } from "../support/mongo/mongod.js";
import { runLatchkey, withTempFolder } from "../support/service/run-latchkey.js";
import { useServices } from "../support/service/service-process.js";
import { hangTimeout, until } from "../support/until.js";
import { callEveryMethod, expectRefused, invalidKeys } from "./support/api-calls.js";
import { sendMisplacedKeys } from "./support/misplaced-keys.js";
import { createProcessInspector } from "./support/process-inspector.js";
import {
  appendDecoded,
  type Outputs,
  type Recording,
  recordApi,
  recordMessages,
  stringify,
  withWatchers,
} from "./support/recording.js";
import { createSecretFinder, type SecretFinder } from "./support/secret-finder.js";

jest.setTimeout(4 * hangTimeout);

/** Calls every method over every protocol. */
async function callEverything(recording: Recording): Promise<void> {
  const { url: baseUrl, port, root, finder, outputs } = recording;
  const rest = recordApi("REST", createRestApi(baseUrl), recording);
  const grpc = recordApi("gRPC", createGrpcApi(`127.0.0.1:${port}`), recording);
  const createApi = (name: string, transport: Transport): [string, StreamingApi] => [
    name,
    recordApi(name, createConnectApi(transport), recording),
  ];
  const streaming: [string, StreamingApi][] = [
    ["gRPC", grpc],
    createApi("Connect", createConnectTransport({ baseUrl, httpVersion: "1.1" })),
    createApi("gRPC-Web", createGrpcWebTransport({ baseUrl, httpVersion: "1.1" })),
  ];
  await withWatchers(streaming, recording, async () => {
    for (const api of [rest, ...streaming.map(([, api]) => api)]) {
      await callEveryMethod(api, root);
      for (const invalid of invalidKeys(root)) {
        finder.add(invalid);
        await expectRefused(api.whoAmI(invalid));
        await api.checkAccess(root, { key: invalid, permission: "token:read" }).catch(() => {});
      }
    }
    const create = (type: string) =>
      rest.createApplication(root, { name: "Misplaced", type, permissions: ["token:read"] });
    const privateKey = keyOf(await create("private"));
    const { sessionKey, nonce } = await rest.createSession(keyOf(await create("public")));
    const secrets = [privateKey, sessionKey, nonce, invalidKeys(privateKey)[0] as string];
    await Promise.all(secrets.map((secret) => sendMisplacedKeys(secret, recording)));
    await recordMessages(
      "gRPC",
      grpc.streamCheckAccess(root, createChecks(secrets), neverAborted),
      recording,
    );
    for (const path of ["/openapi.json", "/healthz", "/readyz", "/metrics", "/"]) {
      outputs.push([path, stringify(await send(recording, path))]);
    }
    // Refused calls are written to the audit log asynchronously.
    const denials = { kind: ["access.denied"] };
    await until(async () => (await grpc.listEvents(root, denials)).data.length > 0);
    outputs.push(["the audit log", stringify(await grpc.listEvents(root))]);
  });
  grpc.close();
}

const neverAborted = new AbortController().signal;

async function* createChecks(keys: readonly string[]): AsyncGenerator<StreamedCheck> {
  for (const [at, key] of [...keys, ...keys.map((one) => `${one} `)].entries()) {
    yield { correlationId: String(at), check: { key, permission: "token:read" } };
  }
}

async function readFiles(folder: string): Promise<Outputs> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  return Promise.all(
    files.map(async ({ parentPath, name }): Promise<Outputs[number]> => {
      const file = join(parentPath, name);
      return [file, trimZeros(await readFile(file))];
    }),
  );
}

/** Databases preallocate files, some by 100 MB. */
function trimZeros(bytes: Buffer): Buffer {
  const zeros = Buffer.alloc(64 * 1024);
  let end = bytes.length;
  while (end >= zeros.length && bytes.subarray(end - zeros.length, end).equals(zeros)) {
    end -= zeros.length;
  }
  return bytes.subarray(0, end);
}

/** Reads all documents, including the oplog and pre-images, and all database files. */
async function readDatabase({ uri }: Mongod): Promise<Outputs> {
  const client = await new MongoClient(uri, { readPreference: "primary" }).connect();
  try {
    const admin = client.db("admin");
    const { databases } = await admin.admin().listDatabases();
    const outputs: Outputs = [];
    for (const { name } of databases) {
      const db = client.db(name);
      for (const collection of await db.listCollections({ type: "collection" }).toArray()) {
        const all = db.collection(collection.name).find({}, { raw: true });
        const documents = (await all.toArray()) as unknown as Buffer[];
        outputs.push([`${name}.${collection.name}`, Buffer.concat(documents)]);
      }
    }
    await admin.command({ fsync: 1 });
    const { parsed } = await admin.command({ getCmdLineOpts: 1 });
    return [...outputs, ...(await readFiles(parsed.storage.dbPath))];
  } finally {
    await client.close();
  }
}

const start = useServices();

/** Calls everything on a service and returns where secrets were found. */
async function findAllLeaks(
  folder: string,
  store: Readonly<Record<string, string>>,
  readStore: () => Promise<Outputs>,
): Promise<string[]> {
  const bootstrap = runLatchkey(["bootstrap", "--json"], store);
  await bootstrap.ended();
  const { key: root } = JSON.parse(bootstrap.output.stdout);
  const inspector = createProcessInspector(folder);
  const service = await start({ ...store, ...inspector.environment, LOG_LEVEL: "trace" });
  const finder = createSecretFinder();
  finder.add(root);
  const recording: Recording = { url: service.url, port: service.port, root, finder, outputs: [] };
  await callEverything(recording);
  const heaps = await readSettledHeaps(recording, () => inspector.readHeaps(service.process));
  recording.outputs.push(...(await inspector.readProcFiles(service.process)));
  service.process.child.kill("SIGTERM");
  expect(await service.process.ended()).toBe(0);
  const { stdout, stderr } = service.process.output;
  expect(stdout.split("\n").length).toBeGreaterThan(200);
  recording.outputs.push(
    ["stdout", appendDecoded(stdout)],
    ["stderr", appendDecoded(stderr)],
    ["stderr of bootstrap", bootstrap.output.stderr],
    ...(await inspector.readSpans()),
    ...(await readStore()),
  );
  expectCompleteOutputs([...recording.outputs, ...heaps.outputs], store);
  return [...findLeaks(recording.outputs, finder), ...heaps.leaks];
}

function findLeaks(outputs: Outputs, finder: SecretFinder): string[] {
  return outputs.flatMap(([source, content]) =>
    finder.find(content).map((secret) => `${source}: ${secret}`),
  );
}

/** Reads the heaps of all processes until pending writes are done and their secrets collected, or until the deadline. */
async function readSettledHeaps(recording: Recording, read: () => Promise<Outputs>) {
  const deadline = performance.now() + hangTimeout;
  for (;;) {
    // The validator of each worker retains its last invalid input. New requests replace it.
    for (let time = 0; time < 4; time++) {
      await send(recording, "/applications/none", { headers: { "svc-api-key": recording.root } });
    }
    const outputs = await read();
    const leaks = findLeaks(outputs, recording.finder);
    if (leaks.length === 0 || performance.now() > deadline) {
      return { outputs, leaks };
    }
  }
}

/** Checks that the outputs contain known text, so that secrets in them would be found. */
function expectCompleteOutputs(
  outputs: Outputs,
  { WORKERS = "1" }: Readonly<Record<string, string>>,
) {
  const processes = WORKERS === "1" ? 1 : Number(WORKERS) + 1;
  const count = (source: RegExp, text: string) =>
    outputs.filter(([name, content]) => source.test(name) && content.includes(text)).length;
  expect(count(/cmdline$/, "")).toBe(processes);
  expect(count(/heap\.\d+$/, "latchkey")).toBe(processes);
  for (const protocol of ["http.route", "connect_rpc", "rpc.grpc.status_code"]) {
    expect(count(/spans\.\d+$/, protocol)).toBe(Number(WORKERS));
  }
  expect(count(/^(?!.*(heap|spans)).*(data\.mdb|applications)/, "Misplaced")).toBeGreaterThan(0);
}

describe("the keys and nonces of every method", () => {
  it("appear in no file, log, trace, memory or process list on the embedded store", () =>
    withTempFolder(async (folder) => {
      const DATA_DIR = join(folder, "store");
      expect(await findAllLeaks(folder, { DATA_DIR }, () => readFiles(DATA_DIR))).toEqual([]);
    }));

  it("appear in no file, log, trace, memory or process list on MongoDB, with workers and shared rate limits", () =>
    withTempFolder(async (folder) => {
      const mongod = await startMongod();
      try {
        const store = { MONGODB_URI: mongod.uri, WORKERS: "2", RATE_LIMIT_SCOPE: "shared" };
        expect(await findAllLeaks(folder, store, () => readDatabase(mongod))).toEqual([]);
      } finally {
        await mongod.stop();
      }
    }));
});

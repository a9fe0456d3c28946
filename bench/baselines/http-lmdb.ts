/**
 * The lower bound for the embedded store, on `node:http` and `lmdb`. A read finds
 * a record by the id in the header and returns its JSON. A write stores rows of
 * the same number and size as Latchkey and responds when they are on disk. There
 * are no keys, rules, expirations or logs.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { open } from "lmdb";

interface Write {
  readonly status: number;
  readonly body: Buffer;
  /** The record and its index rows. */
  readonly rows: readonly Buffer[];
}

const { PORT, HOST, BODY = "", DATA_DIR, RECORDS, WRITES = "{}" } = process.env;
const json = "application/json";

// As durable as Latchkey: a commit is visible only once it is on disk.
const root = open({ path: DATA_DIR as string, overlappingSync: false, mapSize: 2 ** 36 });
const records = root.openDB<unknown, string>("records", {});
const tables = ["first", "second", "third"].map((name) =>
  root.openDB<Buffer, string>(name, { encoding: "binary" }),
);
const writes = new Map(
  Object.entries(JSON.parse(WRITES) as Record<string, WriteSpec>).map(([path, spec]) => [
    path,
    createWrite(spec),
  ]),
);
let lastId = 0;

/** A write as configured by the benchmark. */
export interface WriteSpec {
  readonly status: number;
  readonly body: string;
  /** The row sizes in bytes. */
  readonly rows: readonly number[];
}

function createWrite({ status, body, rows }: WriteSpec): Write {
  return {
    status,
    body: Buffer.from(body),
    rows: rows.map((size) => Buffer.alloc(size, "r")),
  };
}

function read(request: IncomingMessage, response: ServerResponse): void {
  const body = Buffer.from(JSON.stringify(records.get(request.headers["svc-api-key"] as string)));
  response.writeHead(200, { "content-type": json, "content-length": body.length });
  response.end(body);
}

async function write(response: ServerResponse, { status, body, rows }: Write): Promise<void> {
  // Ids sort by creation time, as those of Latchkey do.
  const id = String(++lastId).padStart(16, "0");
  let committed: Promise<boolean> | undefined;
  for (let index = 0; index < rows.length; index++) {
    committed = tables[index]?.put(id, rows[index] as Buffer);
  }
  await committed;
  response.writeHead(status, { "content-type": json, "content-length": body.length });
  response.end(body);
}

const record = JSON.parse(BODY);
for (let index = 0; index < Number(RECORDS); index++) {
  records.put(`record-${index}`, record);
}
await records.flushed;

createServer((request, response) => {
  const configured = writes.get(request.url as string);
  if (!configured) {
    read(request, response);
    return;
  }
  request.resume();
  request.on("end", () => write(response, configured));
}).listen(Number(PORT), HOST);

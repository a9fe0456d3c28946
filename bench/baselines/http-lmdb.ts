/**
 * The floor of the embedded store: a server written by hand on `node:http` and
 * `lmdb`. A read finds a record by the id in the header and answers its JSON;
 * a write makes as many rows of the same size as Latchkey does, and answers
 * when they are on disk. It knows nothing of keys, rules, expiry or logs.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { open } from "lmdb";

interface Write {
  readonly status: number;
  readonly answer: Buffer;
  /** The record, and what is written beside it: to find it by, to end it, to tell of it. */
  readonly rows: readonly Buffer[];
}

const { PORT, HOST, BODY = "", DATA_DIR, RECORDS, WRITES = "{}" } = process.env;
const json = "application/json";

// As durable as Latchkey's own: nobody sees a commit that is not on disk.
const root = open({ path: DATA_DIR as string, overlappingSync: false, mapSize: 2 ** 36 });
const records = root.openDB<unknown, string>("records", {});
const tables = ["first", "second", "third"].map((name) =>
  root.openDB<Buffer, string>(name, { encoding: "binary" }),
);
const writes = new Map(
  Object.entries(JSON.parse(WRITES) as Record<string, WriteOrder>).map(([path, order]) => [
    path,
    writeOf(order),
  ]),
);
let written = 0;

/** What the benchmark says of a write. */
export interface WriteOrder {
  readonly status: number;
  readonly answer: string;
  /** Their sizes in bytes. */
  readonly rows: readonly number[];
}

function writeOf({ status, answer, rows }: WriteOrder): Write {
  return {
    status,
    answer: Buffer.from(answer),
    rows: rows.map((size) => Buffer.alloc(size, "r")),
  };
}

function read(request: IncomingMessage, response: ServerResponse): void {
  const body = Buffer.from(JSON.stringify(records.get(request.headers["svc-api-key"] as string)));
  response.writeHead(200, { "content-type": json, "content-length": body.length });
  response.end(body);
}

async function write(response: ServerResponse, { status, answer, rows }: Write): Promise<void> {
  // Ids sort by the time of their making, as Latchkey's do.
  const id = String(++written).padStart(16, "0");
  let committed: Promise<boolean> | undefined;
  for (let at = 0; at < rows.length; at++) {
    committed = tables[at]?.put(id, rows[at] as Buffer);
  }
  await committed;
  response.writeHead(status, { "content-type": json, "content-length": answer.length });
  response.end(answer);
}

const record = JSON.parse(BODY);
for (let at = 0; at < Number(RECORDS); at++) {
  records.put(`record-${at}`, record);
}
await records.flushed;

createServer((request, response) => {
  const found = writes.get(request.url as string);
  if (!found) {
    read(request, response);
    return;
  }
  request.resume();
  request.on("end", () => write(response, found));
}).listen(Number(PORT), HOST);

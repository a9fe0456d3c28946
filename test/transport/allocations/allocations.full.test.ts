import { connect } from "node:http2";
import { create, toBinary } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, it, jest } from "@jest/globals";
import { StreamCheckAccessRequestSchema } from "../../../gen/latchkey/v1/access_service_pb.js";
import { grpcHeaders } from "../../support/http/http2-wire.js";
import { envelope } from "../../support/http/raw-grpc.js";
import { latchkeyPath, withTempFolder } from "../../support/service/process.js";
import { firstKeyPattern, listeningPattern } from "../../support/service/service-process.js";
import { type Probed, type Spent, startProbed } from "./probed.js";
import { callEach, callOnce, sendEach } from "./steady-load.js";

/**
 * The allocations of the service per request in addition to Node's own. They are
 * counted, not timed, so the results are the same on every machine. See
 * docs/explanation/performance.md for timings.
 */

const byKeyRpc = "/latchkey.v1.ApplicationService/GetApplicationByKey";
const streamRpc = "/latchkey.v1.AccessService/StreamCheckAccess";
const warmUp = 3_000;
const counted = 3_000;
/**
 * LMDB sets one timer in each tick with a read, to release its read transaction. If
 * the message arrives in a later tick than the headers, both ticks look up the caller.
 */
const timersOfLookUp = 1;

type Load = (count: number) => Promise<void>;

jest.setTimeout(240_000);

let service: Probed;
let bare: Probed;
let release: () => void;
let key: string;
let ports: { readonly service: number; readonly http: number; readonly grpc: number };

beforeAll(async () => {
  const folder = await takeFolder();
  service = startProbed([latchkeyPath, "serve"], {
    ...{ HOST: "127.0.0.1", PORT: "0", WORKERS: "1", DATA_DIR: folder },
  });
  bare = startProbed(["test/transport/allocations/bare-servers.mjs"]);
  [key] = await service.until(firstKeyPattern);
  const [, url = ""] = await service.until(listeningPattern);
  const [floor] = await bare.until(/{.*}/);
  ports = { service: Number(new URL(url).port), ...JSON.parse(floor) };
});

afterAll(() => {
  service.kill();
  bare.kill();
  release();
});

/** A temporary folder. */
function takeFolder(): Promise<string> {
  return new Promise((resolve) => {
    void withTempFolder(
      (folder) =>
        new Promise<void>((done) => {
          release = done;
          resolve(folder);
        }),
    );
  });
}

async function spentBy(process: Probed, load: Load, count = counted): Promise<Spent> {
  await load(warmUp);
  return process.spentOn(load, count);
}

const get = () =>
  Buffer.from(`GET /applications/key HTTP/1.1\r\nhost: a\r\nsvc-api-key: ${key}\r\n\r\n`);

const post = () =>
  Buffer.from(
    `POST ${byKeyRpc} HTTP/1.1\r\nhost: a\r\nsvc-api-key: ${key}\r\n` +
      "content-type: application/json\r\ncontent-length: 2\r\n\r\n{}",
  );

const call = (port: number) => (count: number) =>
  callEach(port, grpcHeaders(byKeyRpc, key), envelope(""), count);

/** A request to the service, the same to a bare server, and the bytes that it may allocate in addition. */
interface Row {
  readonly load: () => Load;
  readonly floor: () => Load;
  readonly more: number;
  /** Whether the request has a body. */
  readonly hasMessage: boolean;
}

const rows: Readonly<Record<string, Row>> = {
  "GET over REST": {
    load: () => (count) => sendEach(ports.service, get(), count),
    floor: () => (count) => sendEach(ports.http, get(), count),
    more: 8_500,
    hasMessage: false,
  },
  "a call of Connect in JSON": {
    load: () => (count) => sendEach(ports.service, post(), count),
    floor: () => (count) => sendEach(ports.http, post(), count),
    more: 11_000,
    hasMessage: true,
  },
  "a call of gRPC": {
    load: () => call(ports.service),
    floor: () => call(ports.grpc),
    more: 12_000,
    hasMessage: true,
  },
};

describe.each(Object.entries(rows))("%s", (_what, { load, floor, more, hasMessage }) => {
  let spent: Spent;
  let least: Spent;

  beforeAll(async () => {
    least = await spentBy(bare, floor());
    spent = await spentBy(service, load());
  });

  it("makes no timer of its own, no signal and no headers of the web", () => {
    expectNothingDear(spent, hasMessage ? 2 * timersOfLookUp : timersOfLookUp);
  });

  it("is released as soon as its response is sent", () => {
    expectLetGo(spent, least);
  });

  it("allocates little more than Node does by itself", () => {
    expect(spent.allocated - least.allocated).toBeLessThan(more);
  });
});

describe("a check in a stream of gRPC", () => {
  let spent: Spent;
  const inOneStream = 500;

  beforeAll(async () => {
    const message = create(StreamCheckAccessRequestSchema, {
      correlationId: "a",
      check: { key, permission: "access:check" },
    });
    const check = envelope(toBinary(StreamCheckAccessRequestSchema, message));
    const checks = Buffer.concat(Array.from({ length: inOneStream }, () => check));
    const load: Load = async (count) => {
      const session = connect(`http://127.0.0.1:${ports.service}`);
      for (let sent = 0; sent < count; sent += inOneStream) {
        await callOnce(session, grpcHeaders(streamRpc, key), checks);
      }
      session.destroy();
    };
    // Checks are small, so it takes more of them to fill the young generation.
    spent = await spentBy(service, load, 5 * counted);
  });

  it("makes no timer, no signal and no headers of the web", () => {
    expectNothingDear(spent, 0);
  });

  it("is released as soon as its response is sent", () => {
    expectLetGo(spent, { promoted: 0, retained: 0 });
  });

  it("allocates little", () => {
    expect(spent.allocated).toBeLessThan(5_500);
  });
});

/** The service creates some of these from time to time, and a stream of hundreds of checks a few. */
function expectNothingDear({ timers, abortControllers, headers }: Spent, given: number): void {
  for (const each of [timers - given, abortControllers, headers]) {
    expect(each).toBeLessThan(0.05);
  }
}

/** A retained call takes 10 kB or more. None may be retained. */
function expectLetGo(spent: Spent, least: Pick<Spent, "promoted" | "retained">): void {
  expect(spent.promoted - least.promoted).toBeLessThan(300);
  expect(spent.retained - least.retained).toBeLessThan(300);
}

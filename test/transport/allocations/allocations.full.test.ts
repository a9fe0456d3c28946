import { connect } from "node:http2";
import { create, toBinary } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import {
  AccessService,
  StreamCheckAccessRequestSchema,
} from "../../../gen/latchkey/v1/access_service_pb.js";
import { ApplicationService } from "../../../gen/latchkey/v1/application_service_pb.js";
import { rpcPath } from "../../support/api/rpc-path.js";
import { grpcHeaders } from "../../support/http/http2-wire.js";
import { envelope } from "../../support/http/raw-grpc.js";
import { latchkeyPath, withTempFolder } from "../../support/service/run-latchkey.js";
import { firstKeyPattern, listeningPattern } from "../../support/service/service-process.js";
import { callGrpc, sendGrpcLoad, sendHttp1Load } from "./load-generator.js";
import {
  type AllocationStats,
  type ProfiledProcess,
  startProfiledProcess,
} from "./profiled-process.js";

/**
 * Compares the allocations per request with those of a minimal Node server. They are
 * counted, not timed, so the results are the same on every machine. See
 * docs/explanation/performance.md for timings.
 */

const getApplicationByKeyPath = rpcPath(ApplicationService.method.getApplicationByKey);
const streamCheckAccessPath = rpcPath(AccessService.method.streamCheckAccess);
const warmupRequests = 3_000;
const measuredRequests = 3_000;
/**
 * LMDB sets one timer in each tick with a read, to release its read transaction. If
 * the message arrives in a later tick than the headers, both ticks look up the caller.
 */
const timersPerLookup = 1;

type Load = (count: number) => Promise<void>;

let service: ProfiledProcess;
let baseline: ProfiledProcess;
let removeFolder: () => void;
let key: string;
let ports: { readonly service: number; readonly http: number; readonly grpc: number };

beforeAll(async () => {
  const folder = await createFolder();
  service = startProfiledProcess([latchkeyPath, "serve"], {
    HOST: "127.0.0.1",
    PORT: "0",
    WORKERS: "1",
    DATA_DIR: folder,
  });
  baseline = startProfiledProcess(["test/transport/allocations/baseline-servers.mjs"]);
  [key] = await service.until(firstKeyPattern);
  const [, url = ""] = await service.until(listeningPattern);
  const [listening] = await baseline.until(/{.*}/);
  ports = { service: Number(new URL(url).port), ...JSON.parse(listening) };
});

afterAll(() => {
  service.kill();
  baseline.kill();
  removeFolder();
});

/** Creates a temporary folder that exists until `removeFolder` is called. */
function createFolder(): Promise<string> {
  return new Promise((resolve) => {
    void withTempFolder(
      (folder) =>
        new Promise<void>((done) => {
          removeFolder = done;
          resolve(folder);
        }),
    );
  });
}

const getRequest = () =>
  Buffer.from(`GET /applications/key HTTP/1.1\r\nhost: a\r\nsvc-api-key: ${key}\r\n\r\n`);

const connectRequest = () =>
  Buffer.from(
    `POST ${getApplicationByKeyPath} HTTP/1.1\r\nhost: a\r\nsvc-api-key: ${key}\r\n` +
      "content-type: application/json\r\ncontent-length: 2\r\n\r\n{}",
  );

const grpcLoad = (port: number) => (count: number) =>
  sendGrpcLoad(port, grpcHeaders(getApplicationByKeyPath, key), envelope(""), count);

/** The same request to the service and to a baseline server. */
interface Scenario {
  readonly load: () => Load;
  readonly baselineLoad: () => Load;
  /** Bytes that the service may allocate in addition to the baseline. */
  readonly maxOverhead: number;
  readonly hasBody: boolean;
}

const scenarios: Readonly<Record<string, Scenario>> = {
  "GET over REST": {
    load: () => (count) => sendHttp1Load(ports.service, getRequest(), count),
    baselineLoad: () => (count) => sendHttp1Load(ports.http, getRequest(), count),
    maxOverhead: 9_500,
    hasBody: false,
  },
  "a Connect call in JSON": {
    load: () => (count) => sendHttp1Load(ports.service, connectRequest(), count),
    baselineLoad: () => (count) => sendHttp1Load(ports.http, connectRequest(), count),
    maxOverhead: 12_500,
    hasBody: true,
  },
  "a gRPC call": {
    load: () => grpcLoad(ports.service),
    baselineLoad: () => grpcLoad(ports.grpc),
    maxOverhead: 12_500,
    hasBody: true,
  },
};

/** The lowest of several measurements, as other load on the machine only adds allocations. */
async function measureLowest(process: ProfiledProcess, load: Load): Promise<AllocationStats> {
  await load(warmupRequests);
  let lowest = await process.profile(load, measuredRequests);
  for (let repetition = 1; repetition < 3; repetition++) {
    const stats = await process.profile(load, measuredRequests);
    lowest = stats.allocated < lowest.allocated ? stats : lowest;
  }
  return lowest;
}

describe.each(Object.entries(scenarios))(
  "%s",
  (_name, { load, baselineLoad, maxOverhead, hasBody }) => {
    let stats: AllocationStats;
    let baselineStats: AllocationStats;

    beforeAll(async () => {
      baselineStats = await measureLowest(baseline, baselineLoad());
      stats = await measureLowest(service, load());
    });

    it("creates no extra timer, AbortController or Headers object", () => {
      expectNoExpensiveObjects(stats, hasBody ? 2 * timersPerLookup : timersPerLookup);
    });

    it("is released as soon as its response is sent", () => {
      expectReleased(stats, baselineStats);
    });

    it("allocates little more than the baseline server", () => {
      expect(stats.allocated - baselineStats.allocated).toBeLessThan(maxOverhead);
    });
  },
);

describe("a check in a gRPC stream", () => {
  let stats: AllocationStats;
  const checksPerStream = 500;

  beforeAll(async () => {
    const message = create(StreamCheckAccessRequestSchema, {
      correlationId: "a",
      check: { principal: { case: "key", value: key }, permission: "access:check" },
    });
    const check = envelope(toBinary(StreamCheckAccessRequestSchema, message));
    const checks = Buffer.concat(Array.from({ length: checksPerStream }, () => check));
    const load: Load = async (count) => {
      const session = connect(`http://127.0.0.1:${ports.service}`);
      for (let sent = 0; sent < count; sent += checksPerStream) {
        await callGrpc(session, grpcHeaders(streamCheckAccessPath, key), checks);
      }
      session.destroy();
    };
    await load(warmupRequests);
    // Checks are small, so it takes more of them to fill the young generation.
    stats = await service.profile(load, 5 * measuredRequests);
  });

  it("creates no timer, AbortController or Headers object", () => {
    expectNoExpensiveObjects(stats, 0);
  });

  it("is released as soon as its response is sent", () => {
    expectReleased(stats, { promoted: 0, retained: 0 });
  });

  it("allocates little", () => {
    expect(stats.allocated).toBeLessThan(7_500);
  });
});

/** Allows for the few that periodic work and stream setup create. */
function expectNoExpensiveObjects(
  { timers, abortControllers, headers }: AllocationStats,
  expectedTimers: number,
): void {
  for (const count of [timers - expectedTimers, abortControllers, headers]) {
    expect(count).toBeLessThan(0.05);
  }
}

/** A retained call would take 10 kB or more. */
function expectReleased(
  stats: AllocationStats,
  baselineStats: Pick<AllocationStats, "promoted" | "retained">,
): void {
  expect(stats.promoted - baselineStats.promoted).toBeLessThan(300);
  expect(stats.retained - baselineStats.retained).toBeLessThan(300);
}

import { once } from "node:events";
import { type ClientHttp2Stream, connect, type OutgoingHttpHeaders } from "node:http2";
import { setTimeout as delay } from "node:timers/promises";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { describe, expect, it } from "@jest/globals";
import { Health } from "../../gen/grpc/health/v1/health_pb.js";
import { AccessService } from "../../gen/latchkey/v1/access_service_pb.js";
import { ApplicationService } from "../../gen/latchkey/v1/application_service_pb.js";
import { rpcPath } from "../support/api/rpc-path.js";
import { send } from "../support/http/http.js";
import { callRaw, detailsOf, envelope } from "../support/http/raw-grpc.js";
import { scrape } from "../support/service/exposition.js";
import { until } from "../support/until.js";
import { noTimeouts, useAttackedService } from "./support/attacked-service.js";

// Each stream stays within its limits. The attacks use many streams on many
// connections to exceed the limits in total.
const service = useAttackedService(noTimeouts);

const megabyte = 1024 * 1024;
const streams = 100;

const healthCheckPath = rpcPath(Health.method.check);
const healthWatchPath = rpcPath(Health.method.watch);
const createApplicationPath = rpcPath(ApplicationService.method.createApplication);
const streamCheckAccessPath = rpcPath(AccessService.method.streamCheckAccess);

const withKey = () => ({ "svc-api-key": service.firstKey });
const asGrpc = { "content-type": "application/grpc", te: "trailers" };
const asJson = { "content-type": "application/json" };

/** The number of responses by status. */
type StatusCounts = Readonly<Record<string, number>>;

interface Flood {
  readonly connections: number;
  /** Streams on each connection, by default 100. */
  readonly streams?: number;
  readonly path: string;
  readonly headers: OutgoingHttpHeaders;
  readonly body: Uint8Array;
  /** Whether to finish the bodies. */
  readonly isComplete: boolean;
  /** The number of requests that may stay pending, by default 0. */
  readonly maxPending?: number;
}

/** Sends the same request on many streams and waits until at most `maxPending` are pending. */
async function flood(options: Flood): Promise<StatusCounts> {
  const { connections, streams: each = streams, isComplete, maxPending = 0 } = options;
  const { path, headers, body } = options;
  const counts: Record<string, number> = {};
  const sessions = Array.from({ length: connections }, () =>
    connect(service.url, { maxSessionMemory: 1_000 }),
  );
  /** Streams that are open and without a response. */
  const pending = new Set<ClientHttp2Stream>();
  const call = (session: (typeof sessions)[number]) => {
    const stream = session.request({ ":method": "POST", ":path": path, ...headers });
    pending.add(stream);
    stream.on("response", ({ ":status": httpStatus, "grpc-status": grpcStatus }) => {
      const status = String(grpcStatus ?? httpStatus);
      counts[status] = (counts[status] ?? 0) + 1;
      pending.delete(stream);
      stream.resume();
    });
    stream.on("error", () => {});
    stream.on("close", () => void pending.delete(stream));
    if (isComplete) {
      stream.end(body);
    } else {
      stream.write(body);
    }
  };
  for (const session of sessions) {
    session.on("error", () => {});
    for (let stream = 0; stream < each; stream++) {
      call(session);
    }
  }
  await until(async () => pending.size <= maxPending);
  for (const session of sessions) {
    session.destroy();
  }
  return counts;
}

describe("many small messages that are large when decompressed", () => {
  const large = Buffer.alloc(megabyte - 10, " ");
  large.write("{}");
  const many = { connections: 10, streams: 60, isComplete: true };

  it.each<[encoding: string, body: () => Uint8Array]>([
    ["br", () => brotliCompressSync(large)],
    ["gzip", () => gzipSync(large)],
  ])("are not decompressed without a key: %s", async (encoding, body) => {
    const headers = { ...asJson, "content-encoding": encoding };
    const counts = await service.runAttack(() =>
      flood({ ...many, path: healthCheckPath, headers, body: body() }),
    );
    expect(counts).toEqual({ 501: 600 });
  });

  it.each<[encoding: string, body: () => Uint8Array]>([
    ["br", () => brotliCompressSync(large)],
    ["gzip", () => gzipSync(large)],
  ])(
    "are decompressed with limited concurrency for callers with a key: %s",
    async (encoding, body) => {
      const headers = { ...asJson, ...withKey(), "content-encoding": encoding };
      const counts = await service.runAttack(() =>
        flood({ ...many, path: createApplicationPath, headers, body: body() }),
      );
      expect(counts["400"]).toBeGreaterThan(0);
      expect((counts["400"] ?? 0) + (counts["503"] ?? 0)).toBe(600);
    },
  );
});

describe("many bodies that never finish", () => {
  const part = Buffer.alloc(megabyte - 1_000, " ");
  const incomplete = Buffer.concat([envelope("", 0, megabyte - 100), part]);

  it.each<[what: string, headers: OutgoingHttpHeaders, body: Buffer]>([
    ["over gRPC", asGrpc, incomplete],
    ["over Connect", asJson, part],
    ["compressed", { ...asJson, "content-encoding": "gzip" }, part],
  ])("are refused without a key: %s", async (_what, headers, body) => {
    const counts = await service.runAttack(() =>
      flood({ connections: 2, path: healthCheckPath, headers, body, isComplete: false }),
    );
    expect(Object.keys(counts)).toHaveLength(1);
    expect(["8", "429", "501"]).toContain(Object.keys(counts)[0]);
  });

  it.each<[what: string, path: string, headers: OutgoingHttpHeaders, body: Buffer, code: string]>([
    ["over REST", "/applications", asJson, part, "503"],
    ["over Connect", createApplicationPath, asJson, part, "503"],
    ["over gRPC", createApplicationPath, asGrpc, incomplete, "14"],
    [
      "over gRPC, compressed",
      createApplicationPath,
      { ...asGrpc, "grpc-encoding": "gzip" },
      incomplete,
      "14",
    ],
    ["in gRPC streams", streamCheckAccessPath, asGrpc, incomplete, "14"],
    [
      "in Connect streams",
      streamCheckAccessPath,
      { "content-type": "application/connect+proto" },
      incomplete,
      "200",
    ],
  ])(
    "are refused when their total size is too large: %s",
    async (_what, path, headers, body, code) => {
      const authenticated = { ...headers, ...withKey() };
      // The body budget is 32 MiB.
      const maxPending = Math.floor((32 * megabyte) / part.length);
      const counts = await service.runAttack((client) =>
        flood({
          connections: 3,
          path,
          headers: authenticated,
          body,
          isComplete: false,
          maxPending,
        }).finally(() => client.waitForResponses(5)),
      );
      expect(counts[code]).toBeGreaterThanOrEqual(3 * streams - maxPending);
    },
  );

  it("release their share of the body budget when they end", async () => {
    const largeBody = Buffer.concat([
      Buffer.from('{"name":'),
      part.subarray(20),
      Buffer.from("1}"),
    ]);
    const sendLargeBody = () =>
      send(service, "/applications", {
        method: "POST",
        headers: { ...asJson, ...withKey() },
        body: largeBody.toString(),
      });
    let response = await sendLargeBody();
    // The service may not have noticed yet that the other clients disconnected.
    await until(async () => {
      response = await sendLargeBody();
      return response.status !== 503;
    });
    expect([response.status, JSON.parse(response.body).code]).toEqual([400, "invalid_request"]);
  });
});

describe("streams that are abandoned as soon as they are opened", () => {
  it("are no longer counted", async () => {
    const session = connect(service.url);
    session.on("error", () => {});
    for (let round = 0; round < 40 && !session.destroyed; round++) {
      for (let each = 0; each < 8; each++) {
        const stream = session.request({
          ":method": "POST",
          ":path": healthWatchPath,
          "content-type": "application/connect+json",
        });
        stream.on("error", () => {});
        stream.resume();
        stream.end(envelope("{}"));
        setImmediate(() => stream.close(8));
      }
      await delay(20);
    }
    session.destroy();
    const method = healthWatchPath.slice(1);
    await until(async () => (await scrape(service)).sum("latchkey_streams_open", { method }) === 0);
    const response = await callRaw(service, healthCheckPath, { body: envelope("") });
    expect(response.headers["grpc-status"]).toBe("0");
  });
});

describe("unauthenticated streams", () => {
  it("are limited to 64", async () => {
    const session = connect(service.url);
    const open = () => {
      const stream = session.request({ ":method": "POST", ":path": healthWatchPath, ...asGrpc });
      stream.on("error", () => {});
      stream.resume();
      stream.end(envelope(""));
      return new Promise((resolve) => stream.on("response", resolve));
    };
    await Promise.all(Array.from({ length: 64 }, open));
    const refused = await callRaw(service, healthWatchPath, { body: envelope("") });
    expect(detailsOf(refused).info?.reason).toBe("TOO_MANY_STREAMS");
    session.destroy();
  });
});

describe("unread metrics responses", () => {
  it("are buffered once for all scrapers", async () => {
    await service.runAttack(async (client) => {
      const sessions = Array.from({ length: 50 }, () =>
        connect(service.url, { settings: { initialWindowSize: 0 } }),
      );
      const responses = sessions.flatMap((session) => {
        session.on("error", () => {});
        return Array.from({ length: streams }, () => {
          const stream = session.request({ ":path": "/metrics" });
          stream.on("error", () => {});
          return once(stream, "response");
        });
      });
      // After the headers, only the closed window holds the bodies back.
      await Promise.all(responses);
      await client.waitForResponses(20);
      for (const session of sessions) {
        session.destroy();
      }
    });
  });
});

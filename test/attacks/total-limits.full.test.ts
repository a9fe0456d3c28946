import { once } from "node:events";
import { type ClientHttp2Stream, connect, type OutgoingHttpHeaders } from "node:http2";
import { setTimeout as delay } from "node:timers/promises";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { describe, expect, it } from "@jest/globals";
import { send } from "../support/http/http.js";
import { callRaw, detailsOf, envelope } from "../support/http/raw-grpc.js";
import { scrape } from "../support/service/exposition.js";
import { until } from "../support/until.js";
import { noTimeouts, useAttackedService } from "./support/attacked-service.js";

// What one caller may send, keep open or leave unread is little. Here it is
// sent over many connections, on many streams each.
const attacked = useAttackedService(noTimeouts);

const megabyte = 1024 * 1024;
const streams = 100;

const healthRpc = "/grpc.health.v1.Health/Check";
const watchRpc = "/grpc.health.v1.Health/Watch";
const createRpc = "/latchkey.v1.ApplicationService/CreateApplication";
const checkRpc = "/latchkey.v1.AccessService/StreamCheckAccess";

const withKey = () => ({ "svc-api-key": attacked.firstKey });
const asGrpc = { "content-type": "application/grpc", te: "trailers" };
const asJson = { "content-type": "application/json" };

/** What the answers to many requests were, each with how often it came. */
type Tally = Readonly<Record<string, number>>;

interface Flood {
  readonly connections: number;
  /** How many on each connection: a hundred where nothing is said. */
  readonly streams?: number;
  readonly path: string;
  readonly headers: OutgoingHttpHeaders;
  readonly body: Uint8Array;
  /** Whether the bodies come to an end. */
  readonly isWhole: boolean;
  /** How many of the requests may stay without an answer: none where nothing is said. */
  readonly unanswered?: number;
}

/** Sends the same request on all streams of many connections, and waits until so many of them are over as should be. */
async function flood(flooding: Flood): Promise<Tally> {
  const { connections, streams: each = streams, isWhole, unanswered = 0 } = flooding;
  const { path, headers, body } = flooding;
  const tally: Record<string, number> = {};
  const sessions = Array.from({ length: connections }, () =>
    connect(attacked.url, { maxSessionMemory: 1_000 }),
  );
  /** Those that have neither an answer nor come to an end. */
  const open = new Set<ClientHttp2Stream>();
  const call = (session: (typeof sessions)[number]) => {
    const stream = session.request({ ":method": "POST", ":path": path, ...headers });
    open.add(stream);
    const note = (answer: string) => {
      tally[answer] = (tally[answer] ?? 0) + 1;
    };
    stream.on("response", ({ ":status": status, "grpc-status": code }) => {
      note(String(code ?? status));
      open.delete(stream);
      stream.resume();
    });
    stream.on("error", () => {});
    stream.on("close", () => void open.delete(stream));
    if (isWhole) {
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
  await until(async () => open.size <= unanswered);
  for (const session of sessions) {
    session.destroy();
  }
  return tally;
}

describe("many small messages that are large when decompressed", () => {
  const large = Buffer.alloc(megabyte - 10, " ");
  large.write("{}");
  const many = { connections: 10, streams: 60, isWhole: true };

  it.each<[encoding: string, body: () => Uint8Array]>([
    ["br", () => brotliCompressSync(large)],
    ["gzip", () => gzipSync(large)],
  ])("are not decompressed for those without a key: %s", async (encoding, body) => {
    const headers = { ...asJson, "content-encoding": encoding };
    const tally = await attacked.during(() =>
      flood({ ...many, path: healthRpc, headers, body: body() }),
    );
    expect(tally).toEqual({ 501: 600 });
  });

  it.each<[encoding: string, body: () => Uint8Array]>([
    ["br", () => brotliCompressSync(large)],
    ["gzip", () => gzipSync(large)],
  ])("are decompressed in turn for those with one: %s", async (encoding, body) => {
    const headers = { ...asJson, ...withKey(), "content-encoding": encoding };
    const tally = await attacked.during(() =>
      flood({ ...many, path: createRpc, headers, body: body() }),
    );
    expect(tally["400"]).toBeGreaterThan(0);
    expect((tally["400"] ?? 0) + (tally["503"] ?? 0)).toBe(600);
  });
});

describe("many bodies that never finish", () => {
  const part = Buffer.alloc(megabyte - 1_000, " ");
  const begun = Buffer.concat([envelope("", 0, megabyte - 100), part]);

  it.each<[what: string, headers: OutgoingHttpHeaders, body: Buffer]>([
    ["over gRPC", asGrpc, begun],
    ["over Connect", asJson, part],
    ["compressed", { ...asJson, "content-encoding": "gzip" }, part],
  ])("are refused to those without a key when they are no question: %s", async (...flooding) => {
    const [, headers, body] = flooding;
    const tally = await attacked.during(() =>
      flood({ connections: 2, path: healthRpc, headers, body, isWhole: false }),
    );
    expect(Object.keys(tally)).toHaveLength(1);
    expect(["8", "429", "501"]).toContain(Object.keys(tally)[0]);
  });

  it.each<[what: string, path: string, headers: OutgoingHttpHeaders, body: Buffer, code: string]>([
    ["over REST", "/applications", asJson, part, "503"],
    ["over Connect", createRpc, asJson, part, "503"],
    ["over gRPC", createRpc, asGrpc, begun, "14"],
    ["over gRPC, compressed", createRpc, { ...asGrpc, "grpc-encoding": "gzip" }, begun, "14"],
    ["in streams of gRPC", checkRpc, asGrpc, begun, "14"],
    [
      "in streams of Connect",
      checkRpc,
      { "content-type": "application/connect+proto" },
      begun,
      "200",
    ],
  ])(
    "are refused when they are too many together: %s",
    async (_what, path, headers, body, code) => {
      const all = { ...headers, ...withKey() };
      // There is room for 32 MiB of bodies, and for no more of these.
      const unanswered = Math.floor((32 * megabyte) / part.length);
      const tally = await attacked.during((others) =>
        flood({ connections: 3, path, headers: all, body, isWhole: false, unanswered }).finally(
          () => others.waitForResponses(5),
        ),
      );
      expect(tally[code]).toBeGreaterThanOrEqual(3 * streams - unanswered);
    },
  );

  it("free their memory for others when they end", async () => {
    const question = Buffer.concat([Buffer.from('{"name":'), part.subarray(20), Buffer.from("1}")]);
    const ask = () =>
      send(attacked, "/applications", {
        ...{ method: "POST", headers: { ...asJson, ...withKey() }, body: question.toString() },
      });
    let answer = await ask();
    // The service may not have seen yet that the others have hung up.
    await until(async () => {
      answer = await ask();
      return answer.status !== 503;
    });
    expect([answer.status, JSON.parse(answer.body).code]).toEqual([400, "invalid_request"]);
  });
});

describe("streams that are abandoned as soon as they are opened", () => {
  it("are no longer counted", async () => {
    const session = connect(attacked.url);
    session.on("error", () => {});
    for (let round = 0; round < 40 && !session.destroyed; round++) {
      for (let each = 0; each < 8; each++) {
        const stream = session.request({
          ...{ ":method": "POST", ":path": watchRpc, "content-type": "application/connect+json" },
        });
        stream.on("error", () => {});
        stream.resume();
        stream.end(envelope("{}"));
        setImmediate(() => stream.close(8));
      }
      await delay(20);
    }
    session.destroy();
    const method = watchRpc.slice(1);
    await until(
      async () => (await scrape(attacked)).sum("latchkey_streams_open", { method }) === 0,
    );
    const answer = await callRaw(attacked, healthRpc, { body: envelope("") });
    expect(answer.headers["grpc-status"]).toBe("0");
  });

  it("are limited to few without a key", async () => {
    const session = connect(attacked.url);
    const open = () => {
      const stream = session.request({ ":method": "POST", ":path": watchRpc, ...asGrpc });
      stream.on("error", () => {});
      stream.resume();
      stream.end(envelope(""));
      return new Promise((resolve) => stream.on("response", resolve));
    };
    await Promise.all(Array.from({ length: 64 }, open));
    const refused = await callRaw(attacked, watchRpc, { body: envelope("") });
    expect(detailsOf(refused).info?.reason).toBe("TOO_MANY_STREAMS");
    session.destroy();
  });
});

describe("unread metrics responses", () => {
  it("are buffered once for all scrapers", async () => {
    await attacked.during(async (others) => {
      const sessions = Array.from({ length: 50 }, () =>
        connect(attacked.url, { settings: { initialWindowSize: 0 } }),
      );
      const answers = sessions.flatMap((session) => {
        session.on("error", () => {});
        return Array.from({ length: streams }, () => {
          const stream = session.request({ ":path": "/metrics" });
          stream.on("error", () => {});
          return once(stream, "response");
        });
      });
      // Their headers have come: nothing keeps their bodies from coming but the window.
      await Promise.all(answers);
      await others.waitForResponses(20);
      for (const session of sessions) {
        session.destroy();
      }
    });
  });
});

import { afterAll, beforeAll, describe, expect, it, jest } from "@jest/globals";
import type { ApiFailure } from "../support/api/api.js";
import { createGrpcApi } from "../support/api/grpc.js";
import { createRequestStream } from "../support/api/streams.js";
import { send } from "../support/http/http.js";
import type { TcpProxy } from "../support/http/tcp-proxy.js";
import { useMongo } from "../support/mongo/mongo.js";
import { hangTimeout, until } from "../support/until.js";
import { outages, startBlockableService } from "./support/blockable-service.js";
import { callAll, type Heard } from "./support/outage-calls.js";

jest.setTimeout(2 * hangTimeout);

const mongo = useMongo();
const closes: (() => Promise<void>)[] = [];
const stories = new Map<string, Promise<Story>>();

/** What was seen of a service whose store went away for a while. */
interface Story {
  readonly before: readonly Heard[];
  readonly during: readonly Heard[];
  /** Of /healthz, and of /readyz. */
  readonly pages: readonly (readonly [
    alive: number,
    ready: number,
    retryAfter: string | undefined,
  ])[];
  /** How streams ended that were open; those that go on have no word. */
  readonly streamEnds: readonly (string | undefined)[];
}

/** Puts a service on a store behind a way that can be blocked. */
async function live(begin: (proxy: TcpProxy) => void): Promise<Story> {
  const service = await startBlockableService(mongo.createDatabase().databaseName);
  const { proxy, server } = service;
  const api = createGrpcApi(`127.0.0.1:${server.port}`);
  closes.push(async () => {
    api.close();
    await service.close();
  });
  const { key } = await server.createTenant();
  const target = { url: server.url, port: server.port, key };
  const streams = await openStreams(api, key);
  const before = await callAll(target);

  begin(proxy);
  const during: Heard[] = await callAll(target);
  // Once more, when it is known to be away.
  during.push(...(await callAll(target)));
  const pages = [await askPages(target)];

  proxy.restore();
  await until(async () => {
    const after = await callAll(target);
    return after.every(({ outcome }) => outcome === "ok");
  });
  await until(async () => (await send(target, "/readyz")).status === 200);
  return {
    ...{ before, during, pages },
    streamEnds: await Promise.all(streams.map((stream) => stream())),
  };
}

async function askPages(target: { readonly port: number }) {
  const [alive, ready] = [await send(target, "/healthz"), await send(target, "/readyz")];
  return [alive.status, ready.status, ready.headers["retry-after"]] as const;
}

/** Opens a stream of each kind. Each is asked at last whether it goes on or how it ended. */
async function openStreams(api: ReturnType<typeof createGrpcApi>, key: string) {
  const requests = createRequestStream<{ check: { key: string; permission: string } }>();
  const check = { check: { key, permission: "access:check" } };
  requests.send(check);
  const asking = setInterval(() => requests.send(check), 500);
  const open = [
    (signal: AbortSignal) => api.watchCredentials(key, { heartbeatMs: 200 }, signal),
    (signal: AbortSignal) => api.watchEvents(key, { heartbeatMs: 200 }, signal),
    (signal: AbortSignal) => api.streamCheckAccess(key, requests, signal),
  ];
  const opened = open.map((stream) => follow(stream));
  closes.push(async () => clearInterval(asking));
  await Promise.all(opened.map(({ first }) => first));
  return opened.map(({ whatBecame }) => whatBecame);
}

function follow(open: (signal: AbortSignal) => AsyncIterable<unknown>) {
  const leaving = new AbortController();
  let count = 0;
  let end: string | undefined;
  const reading = (async () => {
    try {
      for await (const _ of open(leaving.signal)) {
        count++;
      }
      end = "ended without a reason";
    } catch (failure) {
      end = (failure as ApiFailure).reason;
    }
  })();
  return {
    first: until(async () => count > 0 || end !== undefined),

    /** How it has ended, or nothing where it goes on; whoever does neither is silent for good. */
    async whatBecame(): Promise<string | undefined> {
      const heard = count;
      await until(async () => count > heard || end !== undefined);
      const ended = end;
      leaving.abort();
      await reading;
      return ended;
    },
  };
}

beforeAll(() => {
  for (const [name, begin] of Object.entries(outages)) {
    const story = live(begin);
    story.catch(() => {});
    stories.set(name, story);
  }
});

afterAll(async () => {
  await Promise.all(closes.map((close) => close()));
});

describe.each(Object.keys(outages))("a service whose MongoDB %s", (name) => {
  const story = () => stories.get(name) as Promise<Story>;

  it("responds to every call during the outage with an error and a retry delay", async () => {
    const { before, during } = await story();
    expect(new Set(before.map(({ outcome }) => outcome))).toEqual(new Set(["ok"]));
    expect(during.filter(({ outcome }) => outcome !== "unavailable")).toEqual([]);
    expect(during.filter(({ hasHint }) => !hasHint)).toEqual([]);
    const slowest = Math.max(...during.map(({ took }) => took));
    console.info(`whose MongoDB ${name}: the slowest answer took ${Math.round(slowest)} ms`);
  });

  it("stays alive, reports not ready, and recovers without a restart", async () => {
    // The story ends only once every call works again and the service is ready.
    const { pages } = await story();
    expect(pages).toEqual([[200, 503, "1"]]);
  });

  it("continues streams or ends them with an error, and leaves none hanging", async () => {
    const { streamEnds } = await story();
    for (const end of streamEnds.filter((end) => end !== undefined)) {
      expect(end).toBe("store_unavailable");
    }
  });
});

import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, it, jest } from "@jest/globals";
import type { ApiFailure } from "../support/api/api.js";
import { createGrpcApi } from "../support/api/grpc.js";
import { createRequestStream } from "../support/api/streams.js";
import { send } from "../support/http/http.js";
import type { TcpProxy } from "../support/http/tcp-proxy.js";
import { useMongo } from "../support/mongo/mongo.js";
import { hangTimeout, until } from "../support/until.js";
import { outages, startProxiedService } from "./support/mongo-proxy.js";
import { type CallOutcome, callAll } from "./support/outage-calls.js";

jest.setTimeout(2 * hangTimeout);

const mongo = useMongo();
const closes: (() => Promise<void>)[] = [];
const observations = new Map<string, Promise<Observation>>();

/** The responses of a service before and during an outage of its store. */
interface Observation {
  readonly before: readonly CallOutcome[];
  readonly during: readonly CallOutcome[];
  /** Of /healthz and /readyz during the outage. */
  readonly health: readonly [alive: number, ready: number, retryAfter: string | undefined];
  /** The errors that ended open streams. Undefined for streams that continued. */
  readonly streamErrors: readonly (string | undefined)[];
}

/** Interrupts the connection of a service to its store, and resolves after it has recovered. */
async function observeOutage(interrupt: (proxy: TcpProxy) => void): Promise<Observation> {
  const service = await startProxiedService(mongo.createDatabase().databaseName);
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

  interrupt(proxy);
  const during: CallOutcome[] = await callAll(target);
  // Once more, now that the service has noticed.
  during.push(...(await callAll(target)));
  const health = await getHealth(target);

  proxy.restore();
  await until(async () => {
    const after = await callAll(target);
    return after.every(({ outcome }) => outcome === "ok");
  });
  await until(async () => (await send(target, "/readyz")).status === 200);
  return {
    before,
    during,
    health,
    streamErrors: await Promise.all(streams.map((getError) => getError())),
  };
}

async function getHealth(target: { readonly port: number }) {
  const [alive, ready] = [await send(target, "/healthz"), await send(target, "/readyz")];
  return [alive.status, ready.status, ready.headers["retry-after"]] as const;
}

/** Opens a stream of each kind. Returns functions that report whether each continues or how it failed. */
async function openStreams(api: ReturnType<typeof createGrpcApi>, key: string) {
  const requests = createRequestStream<{ check: { key: string; permission: string } }>();
  const check = { check: { key, permission: "access:check" } };
  requests.send(check);
  const timer = setInterval(() => requests.send(check), 500);
  const open = [
    (signal: AbortSignal) => api.watchCredentials(key, { heartbeat: durationFromMs(200) }, signal),
    (signal: AbortSignal) => api.watchEvents(key, { heartbeat: durationFromMs(200) }, signal),
    (signal: AbortSignal) => api.streamCheckAccess(key, requests, signal),
  ];
  const opened = open.map((stream) => follow(stream));
  closes.push(async () => clearInterval(timer));
  await Promise.all(opened.map(({ first }) => first));
  return opened.map(({ getError }) => getError);
}

function follow(open: (signal: AbortSignal) => AsyncIterable<unknown>) {
  const controller = new AbortController();
  let count = 0;
  let error: string | undefined;
  const reading = (async () => {
    try {
      for await (const _ of open(controller.signal)) {
        count++;
      }
      error = "ended without a reason";
    } catch (failure) {
      error = (failure as ApiFailure).reason;
    }
  })();
  return {
    first: until(async () => count > 0 || error !== undefined),

    /** Waits until the stream has failed or delivered another message, and returns the error. */
    async getError(): Promise<string | undefined> {
      const before = count;
      await until(async () => count > before || error !== undefined);
      const found = error;
      controller.abort();
      await reading;
      return found;
    },
  };
}

beforeAll(() => {
  for (const [name, interrupt] of Object.entries(outages)) {
    const observation = observeOutage(interrupt);
    observation.catch(() => {});
    observations.set(name, observation);
  }
});

afterAll(async () => {
  await Promise.all(closes.map((close) => close()));
});

describe.each(Object.keys(outages))("a service whose MongoDB %s", (name) => {
  const observation = () => observations.get(name) as Promise<Observation>;

  it("responds to every call during the outage with an error and a retry delay", async () => {
    const { before, during } = await observation();
    expect(new Set(before.map(({ outcome }) => outcome))).toEqual(new Set(["ok"]));
    expect(during.filter(({ outcome }) => outcome !== "unavailable")).toEqual([]);
    expect(during.filter(({ hasHint }) => !hasHint)).toEqual([]);
    const slowest = Math.max(...during.map(({ duration }) => duration));
    console.info(`MongoDB ${name}: the slowest response took ${Math.round(slowest)} ms`);
  });

  it("stays alive, reports not ready, and recovers without a restart", async () => {
    // The observation resolves only when every call works again and the service is ready.
    const { health } = await observation();
    expect(health).toEqual([200, 503, "1"]);
  });

  it("continues streams or ends them with an error, and leaves none hanging", async () => {
    const { streamErrors } = await observation();
    for (const error of streamErrors.filter((error) => error !== undefined)) {
      expect(error).toBe("store_unavailable");
    }
  });
});

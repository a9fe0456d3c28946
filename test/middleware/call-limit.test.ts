import { once } from "node:events";
import { connect } from "node:net";
import { Code } from "@connectrpc/connect";
import { describe, expect, it } from "@jest/globals";
import { streamClients, useReaders } from "../support/api/streams.js";
import { expectProblem, send } from "../support/http/http.js";
import { usePausableServer } from "../support/service/pausable-server.js";
import { until } from "../support/until.js";

const limit = 3;

const read = useReaders();
const target = usePausableServer({ CALL_LIMIT: String(limit) });

const getByKey = () =>
  send(target.server, "/applications/key", { headers: { "svc-api-key": target.root.key } });

/** Starts as many calls as may be in flight. Returns a function that ends them and returns their statuses. */
async function fillLimit(): Promise<() => Promise<number[]>> {
  const responses: ReturnType<typeof getByKey>[] = [];
  for (let count = 0; count < limit; count++) {
    const { response } = await target.startCall(getByKey);
    responses.push(response);
  }
  return async () => {
    target.store.resumeReads();
    return (await Promise.all(responses)).map(({ status }) => status);
  };
}

describe("a service with CALL_LIMIT calls in flight", () => {
  it("refuses further calls with 503 and Retry-After until one ends", async () => {
    const endCalls = await fillLimit();
    const refused = await getByKey();
    expectProblem(refused, 503, "overloaded");
    expect(Number(refused.headers["retry-after"])).toBeGreaterThan(0);
    expect(await endCalls()).toEqual(Array(limit).fill(200));
    expect((await getByKey()).status).toBe(200);
  });

  it.each(streamClients)("refuses calls over %s as unavailable", async (...row) => {
    const [, connectTo] = row;
    const endCalls = await fillLimit();
    const api = connectTo(target.server);
    await expect(api.getApplicationByKey(target.root.key)).rejects.toMatchObject({
      status: Code.Unavailable,
      reason: "overloaded",
      hasRetryHint: true,
    });
    api.close();
    await endCalls();
  });

  it("responds to probes and scrapes", async () => {
    const endCalls = await fillLimit();
    for (const path of ["/healthz", "/readyz", "/metrics"]) {
      expect((await send(target.server, path)).status).toBe(200);
    }
    await endCalls();
  });
});

describe("open streams", () => {
  it.each(streamClients)("over %s do not count as calls in flight", async (...row) => {
    const [, connectTo] = row;
    const api = connectTo(target.server);
    for (let count = 0; count < limit + 1; count++) {
      await read((signal) => api.watchCredentials(target.root.key, {}, signal)).next();
    }
    expect((await getByKey()).status).toBe(200);
    api.close();
  });
});

describe("pipelined requests", () => {
  const ask = (path: string) =>
    `GET ${path} HTTP/1.1\r\nHost: localhost\r\nsvc-api-key: ${target.root.key}\r\n\r\n`;

  it("no longer count when their client has disconnected", async () => {
    for (let round = 0; round < 2; round++) {
      await target.startCall(async () => {
        const socket = connect(target.server.port, "127.0.0.1");
        socket.write(ask("/applications/key").repeat(limit + 1));
        await target.store.nextPausedRead();
        socket.destroy();
        await once(socket, "close");
      });
      target.store.resumeReads();
    }
    const socket = connect(target.server.port, "127.0.0.1");
    let text = "";
    socket.on("data", (data) => {
      text += data;
    });
    socket.write(ask("/healthz").repeat(limit));
    await until(async () => socket.destroyed || text.split("HTTP/1.1 200").length > limit);
    expect(text.split("HTTP/1.1 200")).toHaveLength(limit + 1);
    socket.destroy();
  });
});

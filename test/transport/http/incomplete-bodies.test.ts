import { once } from "node:events";
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from "node:http2";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { startServer, type TestServer } from "../../support/service/server.js";
import { until } from "../../support/until.js";

/** The number of incomplete bodies that the server allows of each kind: half of the calls. */
const allowed = 4;
const environment = {
  CALL_LIMIT: String(2 * allowed),
  HEADER_TIMEOUT: "24h",
  BODY_TIMEOUT: "24h",
};

let server: TestServer;
let key: string;
let session: ClientHttp2Session;

beforeAll(async () => {
  server = await startServer("lmdb", { environment });
  ({ key } = await server.createTenant());
});

afterAll(() => server.close());

beforeEach(() => {
  session = connect(server.url);
});

afterEach(() => session.destroy());

/** Starts a call whose body is incomplete. */
function startCall(headers: Record<string, string>): ClientHttp2Stream {
  const stream = session.request({
    ":method": "POST",
    ":path": "/applications",
    "content-type": "application/json",
    ...headers,
  });
  stream.on("error", () => {});
  stream.write('{"name":');
  stream.resume();
  return stream;
}

/** Starts calls one by one until the server cancels the first of them. */
async function startUntilCanceled(start: () => Promise<ClientHttp2Stream>): Promise<void> {
  const first = await start();
  for (let count = 1; count <= allowed; count++) {
    await start();
  }
  await until(async () => first.closed);
}

async function startRefused(): Promise<ClientHttp2Stream> {
  const stream = startCall({});
  const [headers] = await once(stream, "response");
  expect(headers[":status"]).toBe(401);
  return stream;
}

/** The server sends 100 Continue when it reads the body. */
async function startAccepted(): Promise<ClientHttp2Stream> {
  const stream = startCall({ "svc-api-key": key, expect: "100-continue" });
  await once(stream, "continue");
  return stream;
}

async function startWithoutKey(): Promise<ClientHttp2Stream> {
  const stream = startCall({
    ":path": "/grpc.health.v1.Health/Check",
    "content-type": "application/grpc",
    expect: "100-continue",
  });
  await once(stream, "continue");
  return stream;
}

describe("incomplete bodies over HTTP/2", () => {
  it.each([
    ["refused calls", startRefused],
    ["methods that need no key", startWithoutKey],
  ])("of %s do not cancel those of accepted calls", async (_kind, start) => {
    const accepted = await startAccepted();
    await startUntilCanceled(start);
    accepted.end('"a","type":"private","permissions":["token:read"]}');
    const [headers] = await once(accepted, "response");
    expect(headers[":status"]).toBe(201);
  });

  it("of accepted calls do not cancel those of refused calls", async () => {
    const refused = await startRefused();
    await startUntilCanceled(startAccepted);
    expect(refused.closed).toBe(false);
  });
});

import { Agent, request } from "node:http";
import { type ClientHttp2Session, connect } from "node:http2";
import { create, toBinary } from "@bufbuild/protobuf";
import {
  AccessService,
  CheckAccessRequestSchema,
} from "../../../gen/latchkey/v1/access_service_pb.js";
import { rpcPath } from "../../support/api/rpc-path.js";
import { callRaw, envelope } from "../../support/http/raw-grpc.js";

/** The outcomes of the requests of a load. */
export interface DrainResult {
  /** The number of responses by HTTP or gRPC status. */
  readonly responses: Record<string, number>;
  /** The requests without a response. */
  readonly lost: LostRequest[];
}

export interface LostRequest {
  readonly protocol: string;
  readonly failure: string;
  /** Whether its connection had served an earlier request. */
  readonly isReused: boolean;
  /** Whether the service refused it unprocessed, so that it is safe to retry. */
  readonly isRefused: boolean;
  /** Before it was sent and when it was passed to the system, in the time of `performance.now()`. */
  readonly sentAt: number;
  readonly flushedAt: number;
  /** The `connection` header of the previous response on an HTTP/1.1 keep-alive connection. */
  readonly lastConnectionHeader?: string | undefined;
}

interface Target {
  readonly url: string;
  readonly key: string;
}

const application = JSON.stringify({
  name: "drained",
  type: "private",
  permissions: ["token:read"],
});

/** Calls over HTTP/1.1 with and without keep-alive, and over HTTP/2, until the service refuses connections. */
export async function callUntilRefused(target: Target, result: DrainResult): Promise<void> {
  const callers = [
    ...Array.from({ length: 6 }, () => callOverHttp1(target, result, true)),
    ...Array.from({ length: 2 }, () => callOverHttp1(target, result, false)),
    ...Array.from({ length: 2 }, () => callOverHttp2(target, result)),
  ];
  await Promise.all(callers);
}

function count({ responses }: DrainResult, status: string): void {
  responses[status] = (responses[status] ?? 0) + 1;
}

/** Sends one request after the other, with or without keep-alive. */
async function callOverHttp1(
  target: Target,
  result: DrainResult,
  isKeepAlive: boolean,
): Promise<void> {
  const agent = new Agent({ keepAlive: isKeepAlive, maxSockets: 1 });
  let lastConnectionHeader: string | undefined;
  for (let index = 0; ; index++) {
    const sentAt = performance.now();
    const response = await (index % 4 === 0
      ? send(target, agent, "POST", "/applications", application)
      : send(target, agent, "GET", "/applications/key"));
    if ("status" in response) {
      count(result, `HTTP ${response.status}`);
      lastConnectionHeader = isKeepAlive ? response.connection : undefined;
      continue;
    }
    result.lost.push({
      protocol: "HTTP/1.1",
      ...response,
      isRefused: false,
      sentAt,
      lastConnectionHeader,
    });
    agent.destroy();
    return;
  }
}

type SendResult =
  | { readonly status: number; readonly connection: string }
  | { readonly failure: string; readonly isReused: boolean; readonly flushedAt: number };

function send(
  { url, key }: Target,
  agent: Agent,
  method: string,
  path: string,
  body?: string,
): Promise<SendResult> {
  const headers = { "svc-api-key": key, "content-type": "application/json" };
  return new Promise((resolve) => {
    const outgoing = request(url + path, { method, headers, agent });
    let flushedAt = Number.POSITIVE_INFINITY;
    outgoing.on("finish", () => {
      flushedAt = performance.now();
    });
    const fail = ({ code, message }: NodeJS.ErrnoException) =>
      resolve({ failure: code ?? message, isReused: outgoing.reusedSocket, flushedAt });
    outgoing.on("error", fail);
    outgoing.on("response", (incoming) => {
      const { statusCode: status = 0, headers } = incoming;
      incoming.on("error", fail);
      incoming.on("end", () => resolve({ status, connection: headers.connection ?? "" }));
      incoming.resume();
    });
    outgoing.end(body);
  });
}

const concurrency = 4;

/** Makes a few calls at a time over one connection, and over a new one after a GOAWAY. */
async function callOverHttp2(target: Target, result: DrainResult): Promise<void> {
  for (;;) {
    const session = await openSession(target.url);
    if (!session) {
      return;
    }
    const calls = Array.from({ length: concurrency }, () =>
      callOverSession(session, target, result),
    );
    await Promise.all(calls);
    session.close();
  }
}

function openSession(url: string): Promise<ClientHttp2Session | undefined> {
  return new Promise((resolve) => {
    const session = connect(url);
    // After its SETTINGS frame, the connection is served and not only queued.
    session.on("remoteSettings", () => resolve(session));
    session.on("error", () => resolve(undefined));
    session.on("close", () => resolve(undefined));
  });
}

async function callOverSession(
  session: ClientHttp2Session,
  target: Target,
  result: DrainResult,
): Promise<void> {
  const { key } = target;
  const check = create(CheckAccessRequestSchema, {
    principal: { case: "key", value: key },
    permission: "access:check",
  });
  const body = envelope(toBinary(CheckAccessRequestSchema, check));
  const path = rpcPath(AccessService.method.checkAccess);
  while (!session.closed && !session.destroyed) {
    const sentAt = performance.now();
    let flushedAt = Number.POSITIVE_INFINITY;
    // An HTTP/2 session flushes its pending frames in the next tick of the event loop.
    setImmediate(() =>
      setImmediate(() => {
        flushedAt = performance.now();
      }),
    );
    const outcome = await callRaw(target, path, { headers: { "svc-api-key": key }, body }, session)
      .then(({ headers }) => headers["grpc-status"] ?? "a stream without trailers")
      .catch(({ message }: Error) => message);
    if (/^\d+$/.test(outcome)) {
      count(result, `gRPC ${outcome}`);
    } else {
      const isRefused = outcome.includes("REFUSED_STREAM");
      const failure = { protocol: "gRPC", failure: outcome, isReused: true, isRefused };
      result.lost.push({ ...failure, sentAt, flushedAt });
    }
  }
}

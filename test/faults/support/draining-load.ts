import { Agent, request } from "node:http";
import { type ClientHttp2Session, connect } from "node:http2";
import { create, toBinary } from "@bufbuild/protobuf";
import { CheckAccessRequestSchema } from "../../../gen/latchkey/v1/access_service_pb.js";
import { callRaw, envelope } from "../../support/http/raw-grpc.js";

/** The outcomes of the requests of a load. */
export interface DrainTally {
  /** The number of responses by HTTP or gRPC status. */
  readonly answers: Record<string, number>;
  /** The requests without a response. */
  readonly lost: LostRequest[];
}

export interface LostRequest {
  readonly protocol: string;
  readonly failure: string;
  /** Whether its connection had served an earlier request. */
  readonly isInUse: boolean;
  /** Whether the service refused it unprocessed, so that it is safe to retry. */
  readonly isRefused: boolean;
  /** Before it was sent and when it was passed to the system, in the time of `performance.now()`. */
  readonly sentAt: number;
  readonly flushedAt: number;
  /** The `connection` header of the previous response on an HTTP/1.1 keep-alive connection. */
  readonly lastWord?: string | undefined;
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

/** Calls in several ways at once, each until the service refuses connections. */
export async function callUntilRefused(target: Target, tally: DrainTally): Promise<void> {
  const callers = [
    ...Array.from({ length: 6 }, () => callOverHttp1(target, tally, true)),
    ...Array.from({ length: 2 }, () => callOverHttp1(target, tally, false)),
    ...Array.from({ length: 2 }, () => callOverHttp2(target, tally)),
  ];
  await Promise.all(callers);
}

function count({ answers }: DrainTally, status: string): void {
  answers[status] = (answers[status] ?? 0) + 1;
}

/** Sends one request after the other, with or without keep-alive. */
async function callOverHttp1(target: Target, tally: DrainTally, isKept: boolean): Promise<void> {
  const agent = new Agent({ keepAlive: isKept, maxSockets: 1 });
  let lastWord: string | undefined;
  for (let turn = 0; ; turn++) {
    const sentAt = performance.now();
    const answer = await (turn % 4 === 0
      ? send(target, agent, "POST", "/applications", application)
      : send(target, agent, "GET", "/applications/key"));
    if ("status" in answer) {
      count(tally, `HTTP ${answer.status}`);
      lastWord = isKept ? answer.connection : undefined;
      continue;
    }
    tally.lost.push({ protocol: "HTTP/1.1", ...answer, isRefused: false, sentAt, lastWord });
    agent.destroy();
    return;
  }
}

type Answer =
  | { readonly status: number; readonly connection: string }
  | { readonly failure: string; readonly isInUse: boolean; readonly flushedAt: number };

function send(
  { url, key }: Target,
  agent: Agent,
  method: string,
  path: string,
  body?: string,
): Promise<Answer> {
  const headers = { "svc-api-key": key, "content-type": "application/json" };
  return new Promise((resolve) => {
    const outgoing = request(url + path, { method, headers, agent });
    let flushedAt = Number.POSITIVE_INFINITY;
    outgoing.on("finish", () => {
      flushedAt = performance.now();
    });
    const fail = ({ code, message }: NodeJS.ErrnoException) =>
      resolve({ failure: code ?? message, isInUse: outgoing.reusedSocket, flushedAt });
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

const callsAtATime = 4;

/** Makes a few calls at a time over one connection, and over a new one after a GOAWAY. */
async function callOverHttp2(target: Target, tally: DrainTally): Promise<void> {
  for (;;) {
    const session = await reach(target.url);
    if (!session) {
      return;
    }
    const calls = Array.from({ length: callsAtATime }, () => callOn(session, target, tally));
    await Promise.all(calls);
    session.close();
  }
}

function reach(url: string): Promise<ClientHttp2Session | undefined> {
  return new Promise((resolve) => {
    const session = connect(url);
    // After its SETTINGS frame, the connection is served and not only queued.
    session.on("remoteSettings", () => resolve(session));
    session.on("error", () => resolve(undefined));
    session.on("close", () => resolve(undefined));
  });
}

async function callOn(
  session: ClientHttp2Session,
  target: Target,
  tally: DrainTally,
): Promise<void> {
  const { key } = target;
  const check = create(CheckAccessRequestSchema, { key, permission: "access:check" });
  const body = envelope(toBinary(CheckAccessRequestSchema, check));
  const path = "/latchkey.v1.AccessService/CheckAccess";
  while (!session.closed && !session.destroyed) {
    const sentAt = performance.now();
    let flushedAt = Number.POSITIVE_INFINITY;
    // A session of HTTP/2 sends in the first turn of the loop what it was given before.
    setImmediate(() =>
      setImmediate(() => {
        flushedAt = performance.now();
      }),
    );
    const outcome = await callRaw(target, path, { headers: { "svc-api-key": key }, body }, session)
      .then(({ headers }) => headers["grpc-status"] ?? "a stream without an end")
      .catch(({ message }: Error) => message);
    if (/^\d+$/.test(outcome)) {
      count(tally, `gRPC ${outcome}`);
    } else {
      const isRefused = outcome.includes("REFUSED_STREAM");
      const failure = { protocol: "gRPC", failure: outcome, isInUse: true, isRefused };
      tally.lost.push({ ...failure, sentAt, flushedAt });
    }
  }
}

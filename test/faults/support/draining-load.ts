import { Agent, request } from "node:http";
import { type ClientHttp2Session, connect } from "node:http2";
import { create, toBinary } from "@bufbuild/protobuf";
import { CheckAccessRequestSchema } from "../../../gen/latchkey/v1/access_service_pb.js";
import { callRaw, envelope } from "../../support/raw-grpc.js";

/** What became of the requests of a load. */
export interface DrainTally {
  /** By their status, of HTTP or of gRPC. */
  readonly answers: Record<string, number>;
  /** The last answer of each connection of HTTP/1.1 that was kept: what it said of the connection. */
  readonly lastWords: string[];
  /** Sent on a connection that was in use, or before the service was told to stop, and never answered: why. */
  readonly dropped: string[];
}

/** When the service was told to stop, as `performance.now()` tells time, once it was. */
export interface Stop {
  at: number;
}

export interface Target {
  readonly url: string;
  readonly key: string;
}

const application = JSON.stringify({
  name: "drained",
  type: "private",
  permissions: ["token:read"],
});

/** Keeps calling in several ways at once, each caller until it can reach nobody. */
export async function callUntilRefused(target: Target, stop: Stop): Promise<DrainTally> {
  const tally: DrainTally = { answers: {}, lastWords: [], dropped: [] };
  const callers = [
    ...Array.from({ length: 6 }, () => callOverHttp1(target, tally, stop, true)),
    ...Array.from({ length: 2 }, () => callOverHttp1(target, tally, stop, false)),
    ...Array.from({ length: 2 }, () => callOverHttp2(target, tally, stop)),
  ];
  await Promise.all(callers);
  return tally;
}

function count({ answers }: DrainTally, status: string): void {
  answers[status] = (answers[status] ?? 0) + 1;
}

/** Sends one request after the other, on a connection that is kept or on new ones. */
async function callOverHttp1(
  target: Target,
  tally: DrainTally,
  stop: Stop,
  isKept: boolean,
): Promise<void> {
  const agent = new Agent({ keepAlive: isKept, maxSockets: 1 });
  let lastWord = "";
  for (let turn = 0; ; turn++) {
    const sentAt = performance.now();
    const answer = await (turn % 4 === 0
      ? send(target, agent, "POST", "/applications", application)
      : send(target, agent, "GET", "/applications/key"));
    if ("status" in answer) {
      count(tally, `HTTP ${answer.status}`);
      lastWord = answer.connection;
      continue;
    }
    if (answer.isInUse || sentAt < stop.at) {
      tally.dropped.push(`HTTP/1.1: ${answer.failure}`);
    }
    if (isKept) {
      tally.lastWords.push(lastWord);
    }
    agent.destroy();
    return;
  }
}

type Answer =
  | { readonly status: number; readonly connection: string }
  | { readonly failure: string; readonly isInUse: boolean };

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
    const fail = (error: NodeJS.ErrnoException) =>
      resolve({ failure: error.code ?? error.message, isInUse: outgoing.reusedSocket });
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

/** Makes a few calls at a time over one connection, and over another where it has been told to. */
async function callOverHttp2(target: Target, tally: DrainTally, stop: Stop): Promise<void> {
  for (;;) {
    const session = await reach(target.url);
    if (!session) {
      return;
    }
    const calls = Array.from({ length: callsAtATime }, () => callOn(session, target, tally, stop));
    await Promise.all(calls);
    session.close();
  }
}

function reach(url: string): Promise<ClientHttp2Session | undefined> {
  return new Promise((resolve) => {
    const session = connect(url);
    // Only with its settings it is known to be served, and not just waiting to be.
    session.on("remoteSettings", () => resolve(session));
    session.on("error", () => resolve(undefined));
    session.on("close", () => resolve(undefined));
  });
}

async function callOn(
  session: ClientHttp2Session,
  target: Target,
  tally: DrainTally,
  stop: Stop,
): Promise<void> {
  const { key } = target;
  const check = create(CheckAccessRequestSchema, { key, permission: "access:check" });
  const body = envelope(toBinary(CheckAccessRequestSchema, check));
  const path = "/latchkey.v1.AccessService/CheckAccess";
  while (!session.closed && !session.destroyed) {
    const sentAt = performance.now();
    const outcome = await callRaw(target, path, { headers: { "svc-api-key": key }, body }, session)
      .then(({ headers }) => headers["grpc-status"] ?? "a stream without an end")
      .catch(({ message }: Error) => message);
    if (/^\d+$/.test(outcome)) {
      count(tally, `gRPC ${outcome}`);
    } else if (sentAt < stop.at || !outcome.includes("REFUSED_STREAM")) {
      // What is refused so was not begun, and most often not even sent: the session is about to end.
      tally.dropped.push(`gRPC: ${outcome}`);
    }
  }
}

import { create, toBinary } from "@bufbuild/protobuf";
import { RetryInfoSchema } from "../../../gen/google/rpc/error_details_pb.js";
import { CheckAccessRequestSchema } from "../../../gen/latchkey/v1/access_service_pb.js";
import { send } from "../../support/http/http.js";
import { callRaw, detailsOf, envelope, type StreamResponse } from "../../support/http/raw-grpc.js";

/** The outcome of a call over any protocol, and its duration. */
export interface Heard {
  readonly call: string;
  /** `ok`, `unavailable` for any retryable error, or another outcome. */
  readonly outcome: string;
  /** Whether the response has a retry delay. */
  readonly hasHint: boolean;
  readonly took: number;
}

interface Target {
  readonly url: string;
  readonly port: number;
  readonly key: string;
}

const made = JSON.stringify({ name: "a", type: "private", permissions: ["token:read"] });
const checkRpc = "/latchkey.v1.AccessService/CheckAccess";

/** Calls that read, look up, check and write, over every protocol. */
export function callAll(target: Target): Promise<Heard[]> {
  const { key } = target;
  const headers = { "svc-api-key": key, "content-type": "application/json" };
  const check = { key, permission: "access:check" };
  const checkJson = JSON.stringify(check);
  const message = toBinary(CheckAccessRequestSchema, create(CheckAccessRequestSchema, check));
  const http = (call: string, path: string, method = "GET", body?: string) =>
    timed(call, async () =>
      judgeHttp(await send(target, path, { method, headers, ...(body && { body }) })),
    );
  const rpc = (type: string) =>
    callRaw(target, checkRpc, {
      headers: { "svc-api-key": key, "content-type": type },
      body: envelope(message),
    });
  return Promise.all([
    http("REST read", "/applications/key"),
    http("REST list", "/applications"),
    http("REST events", "/events"),
    http("REST write", "/applications", "POST", made),
    http("REST check", "/access/check", "POST", checkJson),
    http("Connect check", checkRpc, "POST", checkJson),
    timed("gRPC check", async () => judgeGrpc(await rpc("application/grpc"))),
    timed("gRPC-Web check", async () =>
      judgeGrpc(withTrailers(await rpc("application/grpc-web+proto"))),
    ),
  ]);
}

/** Moves the trailers of gRPC-Web from the end of the body to the headers, as in gRPC. */
function withTrailers(answer: StreamResponse): StreamResponse {
  const trailers = answer.body.toString("latin1").matchAll(/(grpc-[a-z-]+): (.*)\r\n/g);
  const told = Object.fromEntries([...trailers].map(([, name, value]) => [name, value]));
  return { ...answer, headers: { ...answer.headers, ...told } };
}

async function timed(
  call: string,
  work: () => Promise<Pick<Heard, "outcome" | "hasHint">>,
): Promise<Heard> {
  const begun = performance.now();
  const judged = await work();
  return { call, ...judged, took: performance.now() - begun };
}

function judgeHttp({ status, headers }: Awaited<ReturnType<typeof send>>) {
  const hasHint = headers["retry-after"] !== undefined;
  const words: Record<number, string> = {
    200: "ok",
    201: "ok",
    503: "unavailable",
    504: "unavailable",
  };
  return { outcome: words[status] ?? String(status), hasHint };
}

export function judgeGrpc(answer: StreamResponse) {
  const status = answer.headers["grpc-status"];
  const words: Record<string, string> = { 0: "ok", 14: "unavailable", 4: "unavailable" };
  const hasHint = status !== "0" && detailsOf(answer).find(RetryInfoSchema) !== undefined;
  return { outcome: words[status ?? ""] ?? `gRPC ${status}`, hasHint };
}

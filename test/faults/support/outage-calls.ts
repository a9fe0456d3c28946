import { create, toBinary } from "@bufbuild/protobuf";
import { RetryInfoSchema } from "../../../gen/google/rpc/error_details_pb.js";
import {
  AccessService,
  CheckAccessRequestSchema,
} from "../../../gen/latchkey/v1/access_service_pb.js";
import { rpcPath } from "../../support/api/rpc-path.js";
import { send } from "../../support/http/http.js";
import { callRaw, detailsOf, envelope, type StreamResponse } from "../../support/http/raw-grpc.js";

/** The outcome of a call over any protocol, and its duration. */
export interface CallOutcome {
  readonly call: string;
  /** `ok`, `unavailable` for any retryable error, or another outcome. */
  readonly outcome: string;
  /** Whether the response has a retry delay. */
  readonly hasHint: boolean;
  readonly duration: number;
}

interface Target {
  readonly url: string;
  readonly port: number;
  readonly key: string;
}

const newApplication = JSON.stringify({ name: "a", type: "private", permissions: ["token:read"] });
const checkAccessPath = rpcPath(AccessService.method.checkAccess);

/** Makes calls that read, look up, check and write, over every protocol. */
export function callAll(target: Target): Promise<CallOutcome[]> {
  const { key } = target;
  const headers = { "svc-api-key": key, "content-type": "application/json" };
  const permission = "access:check";
  const checkJson = JSON.stringify({ key, permission });
  const check = { principal: { case: "key", value: key }, permission } as const;
  const message = toBinary(CheckAccessRequestSchema, create(CheckAccessRequestSchema, check));
  const http = (call: string, path: string, method = "GET", body?: string) =>
    timed(call, async () =>
      classifyHttp(await send(target, path, { method, headers, ...(body && { body }) })),
    );
  const rpc = (type: string) =>
    callRaw(target, checkAccessPath, {
      headers: { "svc-api-key": key, "content-type": type },
      body: envelope(message),
    });
  return Promise.all([
    http("REST read", "/applications/key"),
    http("REST list", "/applications"),
    http("REST events", "/events"),
    http("REST write", "/applications", "POST", newApplication),
    http("REST check", "/access/check", "POST", checkJson),
    http("Connect check", checkAccessPath, "POST", checkJson),
    timed("gRPC check", async () => classifyGrpc(await rpc("application/grpc"))),
    timed("gRPC-Web check", async () =>
      classifyGrpc(withTrailers(await rpc("application/grpc-web+proto"))),
    ),
  ]);
}

/** Moves the trailers of gRPC-Web from the end of the body to the headers, as in gRPC. */
function withTrailers(response: StreamResponse): StreamResponse {
  const trailers = response.body.toString("latin1").matchAll(/(grpc-[a-z-]+): (.*)\r\n/g);
  const fields = Object.fromEntries([...trailers].map(([, name, value]) => [name, value]));
  return { ...response, headers: { ...response.headers, ...fields } };
}

async function timed(
  call: string,
  send: () => Promise<Pick<CallOutcome, "outcome" | "hasHint">>,
): Promise<CallOutcome> {
  const startedAt = performance.now();
  const outcome = await send();
  return { call, ...outcome, duration: performance.now() - startedAt };
}

function classifyHttp({ status, headers }: Awaited<ReturnType<typeof send>>) {
  const hasHint = headers["retry-after"] !== undefined;
  const outcomes: Record<number, string> = {
    200: "ok",
    201: "ok",
    503: "unavailable",
    504: "unavailable",
  };
  return { outcome: outcomes[status] ?? String(status), hasHint };
}

export function classifyGrpc(response: StreamResponse) {
  const status = response.headers["grpc-status"];
  const outcomes: Record<string, string> = { 0: "ok", 14: "unavailable", 4: "unavailable" };
  const hasHint = status !== "0" && detailsOf(response).find(RetryInfoSchema) !== undefined;
  return { outcome: outcomes[status ?? ""] ?? `gRPC ${status}`, hasHint };
}

import { type ClientHttp2Session, connect, constants, type OutgoingHttpHeaders } from "node:http2";
import { getOption } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { errors } from "../../gen/latchkey/v1/options_pb.js";
import { forEachConcurrently } from "../support/concurrency.js";
import type { FuzzedServer } from "./fuzzed-server.js";
import { type GrpcInput, grpcInputs } from "./grpc-inputs.js";
import { createFailureLog, fuzzTimeout, generate } from "./harness.js";

const sessionCount = 4;

interface GrpcResponse {
  readonly status: number;
  /** The gRPC status, if the response has one. */
  readonly code: number | undefined;
  readonly body: string;
  /** The error code of a reset stream. */
  readonly reset: number | undefined;
}

function call(
  session: ClientHttp2Session,
  { method, headers, body }: GrpcInput,
): Promise<GrpcResponse> {
  return new Promise((resolve) => {
    let status = 0;
    let code: number | undefined;
    let text = "";
    const stream = session.request(headers as OutgoingHttpHeaders, { endStream: false });
    const readHeaders = (received: Record<string, unknown>) => {
      const { ":status": newStatus, "grpc-status": newCode } = received;
      status = Number(newStatus ?? status);
      code = newCode === undefined ? code : Number(newCode);
    };
    stream.setTimeout(fuzzTimeout, () => stream.destroy());
    stream.on("response", readHeaders);
    stream.on("trailers", readHeaders);
    stream.on("data", (chunk) => {
      text += chunk.toString("latin1");
      if (method.methodKind === "server_streaming") {
        // A stream that was accepted would never end.
        stream.close();
      }
    });
    stream.on("error", () => {});
    stream.on("close", () =>
      resolve({ status, code, body: text, reset: stream.rstCode || undefined }),
    );
    stream.end(body);
  });
}

const serverErrors = [Code.Unknown, Code.Internal, Code.Unavailable, Code.DataLoss];

/** Whether a call got a response without a server error, a leak, or access to the victim's data. */
function isExpected(
  { method, headers, hasKey }: GrpcInput,
  { status, code, body, reset }: GrpcResponse,
  victimMark: string,
): boolean {
  // RFC 9113 forbids user information in :authority. Node 26 itself resets such streams.
  const hasUserInfo = String(headers[":authority"]).includes("@");
  if (hasUserInfo && status === 0 && reset === constants.NGHTTP2_PROTOCOL_ERROR) {
    return true;
  }
  const needsTarget = getOption(method, errors).some((error) => error.endsWith("_not_found"));
  const isSuccess = code === 0 || (code === undefined && status === 200 && body.startsWith("{}"));
  return (
    status !== 0 &&
    (status < 500 || body.startsWith('{"code":"unimplemented"')) &&
    (code === undefined || !serverErrors.includes(code)) &&
    !body.includes(victimMark) &&
    !(isSuccess && (needsTarget || !hasKey))
  );
}

/** Makes calls on a few connections, and expects each to get a response without a server error. */
export async function fuzzGrpc(server: FuzzedServer, count: number, streams = 25): Promise<void> {
  const failures = createFailureLog();
  const inputs = generate(grpcInputs(server), count);
  const http2Sessions = Array.from({ length: sessionCount }, () =>
    connect(`http://127.0.0.1:${server.port}`),
  );
  const send = async (input: GrpcInput, worker: number) => {
    const response = await call(http2Sessions[worker % sessionCount] as ClientHttp2Session, input);
    if (!isExpected(input, response, server.victim.mark)) {
      const { method, headers, body } = input;
      failures.add({ method: method.name, headers, body: body.toString("hex") }, response);
    }
  };
  try {
    await forEachConcurrently(sessionCount * streams, inputs, send, () => failures.isFull);
  } finally {
    for (const session of http2Sessions) {
      session.destroy();
    }
  }
  failures.expectEmpty();
}

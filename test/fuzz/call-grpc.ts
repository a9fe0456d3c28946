import { type ClientHttp2Session, connect, constants, type OutgoingHttpHeaders } from "node:http2";
import { getOption } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { errors } from "../../gen/latchkey/v1/options_pb.js";
import { forEachConcurrently } from "../support/concurrency.js";
import type { FuzzedServer } from "./fuzzed-server.js";
import { type GrpcInput, grpcCalls } from "./grpc-calls.js";
import { fuzzTimeout } from "./say.js";
import { createFindings, seeded } from "./seeded.js";

const sessions = 4;

interface GrpcAnswer {
  readonly status: number;
  /** Of gRPC, where it is an answer of it. */
  readonly code: number | undefined;
  readonly body: string;
  /** What the stream was reset with, if it was. */
  readonly reset: number | undefined;
}

function call(
  session: ClientHttp2Session,
  { method, headers, body }: GrpcInput,
): Promise<GrpcAnswer> {
  return new Promise((resolve) => {
    let status = 0;
    let code: number | undefined;
    let text = "";
    const stream = session.request(headers as OutgoingHttpHeaders, { endStream: false });
    const note = (got: Record<string, unknown>) => {
      const { ":status": gotStatus, "grpc-status": gotCode } = got;
      status = Number(gotStatus ?? status);
      code = gotCode === undefined ? code : Number(gotCode);
    };
    stream.setTimeout(fuzzTimeout, () => stream.destroy());
    stream.on("response", note);
    stream.on("trailers", note);
    stream.on("data", (chunk) => {
      text += chunk.toString("latin1");
      if (method.methodKind === "server_streaming") {
        // One that was let in would go on for ever.
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

const ownFaults = [Code.Unknown, Code.Internal, Code.Unavailable, Code.DataLoss];

/** Whether a call was answered, with no fault of the server and nothing of the victim, or refused. */
function isAsItShouldBe(
  { method, headers, hasKey }: GrpcInput,
  { status, code, body, reset }: GrpcAnswer,
  mark: string,
): boolean {
  // RFC 9113 forbids user information in :authority. Node 26 refuses it by itself, with a reset.
  const hasUserInfo = String(headers[":authority"]).includes("@");
  if (hasUserInfo && status === 0 && reset === constants.NGHTTP2_PROTOCOL_ERROR) {
    return true;
  }
  const seeks = getOption(method, errors).some((error) => error.endsWith("_not_found"));
  const isDone = code === 0 || (code === undefined && status === 200 && body.startsWith("{}"));
  return (
    status !== 0 &&
    (status < 500 || body.startsWith('{"code":"unimplemented"')) &&
    (code === undefined || !ownFaults.includes(code)) &&
    !body.includes(mark) &&
    !(isDone && (seeks || !hasKey))
  );
}

/** Makes so many calls, so many at a time on each of a few connections, and expects each to be answered, never with a fault of the server. */
export async function callGrpc(server: FuzzedServer, count: number, streams = 25): Promise<void> {
  const findings = createFindings();
  const inputs = seeded(grpcCalls(server), count);
  const open = Array.from({ length: sessions }, () => connect(`http://127.0.0.1:${server.port}`));
  const send = async (input: GrpcInput, lane: number) => {
    const answer = await call(open[lane % sessions] as ClientHttp2Session, input);
    if (!isAsItShouldBe(input, answer, server.victim.mark)) {
      const { method, headers, body } = input;
      findings.add({ method: method.name, headers, body: body.toString("hex") }, answer);
    }
  };
  try {
    await forEachConcurrently(sessions * streams, inputs, send, () => findings.isFull);
  } finally {
    for (const session of open) {
      session.destroy();
    }
  }
  findings.expectNone();
}

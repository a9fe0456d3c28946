import type { ClientHttp2Session, ClientHttp2Stream } from "node:http2";
import { connect, type OutgoingHttpHeaders } from "node:http2";
import { type DescMessage, fromBinary, type MessageShape } from "@bufbuild/protobuf";
import { BinaryReader } from "@bufbuild/protobuf/wire";
import { type Any, AnySchema, anyUnpack } from "@bufbuild/protobuf/wkt";
import { BadRequestSchema, ErrorInfoSchema } from "../../../gen/google/rpc/error_details_pb.js";

/** Asks over gRPC for the health of what is at the other end, and for every change of it. */
export function watchHealth(session: ClientHttp2Session): ClientHttp2Stream {
  const stream = session.request({
    ":method": "POST",
    ":path": "/grpc.health.v1.Health/Watch",
    "content-type": "application/grpc",
    te: "trailers",
  });
  stream.end(Buffer.alloc(5));
  return stream;
}

/** What came back on a stream of HTTP/2, whole. */
export interface StreamResponse {
  readonly status: number;
  /** Headers, and trailers over them. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

interface StreamRequest {
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: Uint8Array | string;
}

const patience = 60_000;

/** Makes a call over HTTP/2, byte for byte as it is said, on a session of its own or on one given. */
export function callRaw(
  { url }: { readonly url: string },
  path: string,
  { headers = {}, body }: StreamRequest,
  given?: ClientHttp2Session,
): Promise<StreamResponse> {
  const session = given ?? connect(url);
  return new Promise<StreamResponse>((resolve, reject) => {
    const stream = session.request({
      ":method": "POST",
      ":path": path,
      "content-type": "application/grpc",
      te: "trailers",
      ...headers,
    });
    const chunks: Buffer[] = [];
    let got: Record<string, string> = {};
    let status = 0;
    stream.setTimeout(patience, () => stream.destroy(new Error(`no end of ${path}`)));
    stream.on("response", ({ ":status": code = 0, ...rest }) => {
      status = code;
      got = rest as Record<string, string>;
    });
    stream.on("trailers", (trailers) => {
      got = { ...got, ...(trailers as Record<string, string>) };
    });
    stream.on("data", (chunk) => chunks.push(chunk));
    stream.on("error", reject);
    stream.on("close", () => resolve({ status, headers: got, body: Buffer.concat(chunks) }));
    stream.end(body);
  }).finally(() => {
    if (!given) {
      session.destroy();
    }
  });
}

/** A message in the envelope of gRPC; the flag and the length may lie. */
export function envelope(message: Uint8Array | string, flag = 0, length?: number): Buffer {
  const bytes = Buffer.from(message as Uint8Array);
  const prefix = Buffer.alloc(5);
  prefix.writeUInt8(flag);
  prefix.writeUInt32BE(length ?? bytes.length, 1);
  return Buffer.concat([prefix, bytes]);
}

/** The details of the error in an answer of gRPC. */
export function detailsOf({ headers }: StreamResponse) {
  return readDetails(Buffer.from(headers["grpc-status-details-bin"] ?? "", "base64"));
}

/** The details in a google.rpc.Status, whose third field they are. */
export function readDetails(status: Uint8Array) {
  const reader = new BinaryReader(status);
  const details: Any[] = [];
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (field === 3) {
      details.push(fromBinary(AnySchema, reader.bytes()));
    } else {
      reader.skip(wireType, field);
    }
  }
  const find = <Desc extends DescMessage>(schema: Desc): MessageShape<Desc> | undefined =>
    details.map((any) => anyUnpack(any, schema)).find(Boolean) as MessageShape<Desc> | undefined;
  return { find, info: find(ErrorInfoSchema), badRequest: find(BadRequestSchema) };
}

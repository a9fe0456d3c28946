import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  type OutgoingHttpHeaders,
} from "node:http2";
import { type DescMessage, fromBinary, type MessageShape } from "@bufbuild/protobuf";
import { BinaryReader } from "@bufbuild/protobuf/wire";
import { type Any, AnySchema, anyUnpack } from "@bufbuild/protobuf/wkt";
import { BadRequestSchema, ErrorInfoSchema } from "../../../gen/google/rpc/error_details_pb.js";
import { Health } from "../../../gen/grpc/health/v1/health_pb.js";
import { rpcPath } from "../api/rpc-path.js";

/** A complete response on an HTTP/2 stream. */
export interface StreamResponse {
  readonly status: number;
  /** Headers merged with trailers. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

interface StreamRequest {
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: Uint8Array | string;
}

const timeout = 60_000;

/** Sends an HTTP/2 request with arbitrary headers and body, on the existing session or a new one. */
export function callRaw(
  { url }: { readonly url: string },
  path: string,
  { headers = {}, body }: StreamRequest,
  existing?: ClientHttp2Session,
): Promise<StreamResponse> {
  const session = existing ?? connect(url);
  return new Promise<StreamResponse>((resolve, reject) => {
    const stream = session.request({
      ":method": "POST",
      ":path": path,
      "content-type": "application/grpc",
      te: "trailers",
      ...headers,
    });
    const chunks: Buffer[] = [];
    let received: Record<string, string> = {};
    let status = 0;
    stream.setTimeout(timeout, () => stream.destroy(new Error(`${path} timed out`)));
    stream.on("response", ({ ":status": code = 0, ...rest }) => {
      status = code;
      received = rest as Record<string, string>;
    });
    stream.on("trailers", (trailers) => {
      received = { ...received, ...(trailers as Record<string, string>) };
    });
    stream.on("data", (chunk) => chunks.push(chunk));
    stream.on("error", reject);
    stream.on("close", () => resolve({ status, headers: received, body: Buffer.concat(chunks) }));
    stream.end(body);
  }).finally(() => {
    if (!existing) {
      session.destroy();
    }
  });
}

/** Starts a Watch call of the gRPC health service. */
export function watchHealth(session: ClientHttp2Session): ClientHttp2Stream {
  const stream = session.request({
    ":method": "POST",
    ":path": rpcPath(Health.method.watch),
    "content-type": "application/grpc",
    te: "trailers",
  });
  stream.end(Buffer.alloc(5));
  return stream;
}

/** Wraps a message in a gRPC envelope. The flag and the length may be wrong. */
export function envelope(message: Uint8Array | string, flag = 0, length?: number): Buffer {
  const bytes = Buffer.from(message as Uint8Array);
  const prefix = Buffer.alloc(5);
  prefix.writeUInt8(flag);
  prefix.writeUInt32BE(length ?? bytes.length, 1);
  return Buffer.concat([prefix, bytes]);
}

/** The error details of a gRPC response. */
export function detailsOf({ headers }: StreamResponse) {
  return readDetails(Buffer.from(headers["grpc-status-details-bin"] ?? "", "base64"));
}

/** Decodes the details, field 3, of a google.rpc.Status. */
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

import type { ClientHttp2Session, ClientHttp2Stream } from "node:http2";

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

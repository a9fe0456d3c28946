import { once } from "node:events";
import { type ClientHttp2Session, connect, type IncomingHttpHeaders } from "node:http2";
import { grpcFrame, grpcHeaders } from "./grpc-streams.js";
import { keyHeader, type Load, type LoadClient, type LoadRequest, loadHost } from "./load.js";

/** Sends requests over HTTP/2: plain ones, and calls of gRPC with one message. */
export function createHttp2Client(load: Load): LoadClient {
  const isGrpc = load.protocol === "grpc";
  const mustHold = load.mustHold === undefined ? undefined : new RegExp(load.mustHold);
  const sessions: ClientHttp2Session[] = [];

  async function openOne(): Promise<void> {
    const session = connect(`http://${loadHost}:${load.port}`);
    sessions.push(session);
    await once(session, "remoteSettings");
  }

  function headersOf({ key, path = load.path }: LoadRequest) {
    return {
      ":method": load.verb,
      ":path": path,
      [keyHeader]: key,
      ...(isGrpc ? grpcHeaders : {}),
    };
  }

  function statusOf(headers: IncomingHttpHeaders, trailers: IncomingHttpHeaders): number {
    return Number(
      isGrpc ? (trailers["grpc-status"] ?? headers["grpc-status"]) : headers[":status"],
    );
  }

  return {
    open: async () => {
      await Promise.all(Array.from({ length: load.connections }, openOne));
    },
    send: (request, at) =>
      new Promise((resolve, reject) => {
        const stream = (sessions[at] as ClientHttp2Session).request(headersOf(request));
        let head: IncomingHttpHeaders = {};
        let trailers: IncomingHttpHeaders = {};
        const parts: Buffer[] = [];
        stream.on("response", (headers) => {
          head = headers;
        });
        stream.on("trailers", (headers) => {
          trailers = headers;
        });
        stream.on("data", (part) => parts.push(part));
        stream.on("error", reject);
        stream.on("end", () => {
          const status = statusOf(head, trailers);
          const body = Buffer.concat(parts);
          if (status === load.status && (mustHold?.test(body.toString("latin1")) ?? true)) {
            resolve(load.keepAnswers ? body.toString() : "");
          } else {
            reject(new Error(`answered ${status} ${trailers["grpc-message"] ?? body}`));
          }
        });
        stream.end(isGrpc ? grpcFrame(request.body ?? "") : undefined);
      }),
    close: () => {
      for (const session of sessions) {
        session.destroy();
      }
    },
  };
}

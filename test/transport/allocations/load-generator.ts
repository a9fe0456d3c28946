import {
  type ClientHttp2Session,
  connect as connectHttp2,
  type OutgoingHttpHeaders,
} from "node:http2";
import { connect } from "node:net";
import { readResponse } from "../../support/http/http2-wire.js";

const connections = 8;
const concurrentCalls = 16;

/** Sends the same HTTP/1.1 request `count` times over a few connections, one at a time on each. */
export async function sendHttp1Load(port: number, request: Buffer, count: number): Promise<void> {
  let remaining = count;

  function runConnection(): Promise<void> {
    return new Promise((resolve, reject) => {
      const socket = connect({ port, host: "127.0.0.1", noDelay: true });
      let text = "";
      const sendNext = () => {
        if (remaining-- > 0) {
          socket.write(request);
        } else {
          socket.destroy();
          resolve();
        }
      };
      socket.on("connect", sendNext);
      socket.on("error", reject);
      socket.on("data", (chunk) => {
        text += chunk.toString("latin1");
        if (isComplete(text)) {
          if (!text.startsWith("HTTP/1.1 200 ")) {
            reject(new Error(text));
          }
          text = "";
          sendNext();
        }
      });
    });
  }

  await Promise.all(Array.from({ length: connections }, runConnection));
}

function isComplete(text: string): boolean {
  const end = text.indexOf("\r\n\r\n");
  const [, length = "0"] = /content-length: (\d+)/i.exec(text) ?? [];
  return end >= 0 && text.length === end + 4 + Number(length);
}

/** Makes the same gRPC call `count` times over one connection, with a few calls in flight. */
export async function sendGrpcLoad(
  port: number,
  headers: OutgoingHttpHeaders,
  body: Buffer,
  count: number,
): Promise<void> {
  let remaining = count;
  const session = connectHttp2(`http://127.0.0.1:${port}`);
  const runCalls = async () => {
    while (remaining-- > 0) {
      await callGrpc(session, headers, body);
    }
  };
  await Promise.all(Array.from({ length: concurrentCalls }, runCalls));
  session.destroy();
}

/** Makes a gRPC call with one or more messages and throws if it fails. */
export async function callGrpc(
  session: ClientHttp2Session,
  headers: OutgoingHttpHeaders,
  body: Buffer,
): Promise<void> {
  const stream = session.request(headers);
  stream.end(body);
  const { trailers, headers: responseHeaders } = await readResponse(stream);
  if (trailers?.["grpc-status"] !== "0") {
    throw new Error(`gRPC call failed: ${JSON.stringify({ responseHeaders, trailers })}`);
  }
}

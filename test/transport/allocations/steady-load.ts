import {
  type ClientHttp2Session,
  connect as connectHttp2,
  type OutgoingHttpHeaders,
} from "node:http2";
import { connect } from "node:net";
import { readResponse } from "../../support/http/http2-wire.js";

const connections = 8;
const callsAtATime = 16;

/** Sends the same bytes so many times over a few connections of HTTP/1.1, each after the answer to the one before. */
export async function sendEach(port: number, request: Buffer, count: number): Promise<void> {
  let left = count;

  function sendOverOne(): Promise<void> {
    return new Promise((resolve, reject) => {
      const socket = connect({ port, host: "127.0.0.1", noDelay: true });
      let text = "";
      const next = () => {
        if (left-- > 0) {
          socket.write(request);
        } else {
          socket.destroy();
          resolve();
        }
      };
      socket.on("connect", next);
      socket.on("error", reject);
      socket.on("data", (chunk) => {
        text += chunk.toString("latin1");
        if (isWhole(text)) {
          if (!text.startsWith("HTTP/1.1 200 ")) {
            reject(new Error(text));
          }
          text = "";
          next();
        }
      });
    });
  }

  await Promise.all(Array.from({ length: connections }, sendOverOne));
}

function isWhole(text: string): boolean {
  const end = text.indexOf("\r\n\r\n");
  const [, length = "0"] = /content-length: (\d+)/i.exec(text) ?? [];
  return end >= 0 && text.length === end + 4 + Number(length);
}

/** Makes the same call of gRPC so many times over one connection, a few at a time. */
export async function callEach(
  port: number,
  headers: OutgoingHttpHeaders,
  body: Buffer,
  count: number,
): Promise<void> {
  let left = count;
  const session = connectHttp2(`http://127.0.0.1:${port}`);
  const callAgain = async () => {
    while (left-- > 0) {
      await callOnce(session, headers, body);
    }
  };
  await Promise.all(Array.from({ length: callsAtATime }, callAgain));
  session.destroy();
}

/** Makes a call of gRPC, with one message or many, and sees that it goes well. */
export async function callOnce(
  session: ClientHttp2Session,
  headers: OutgoingHttpHeaders,
  body: Buffer,
): Promise<void> {
  const stream = session.request(headers);
  stream.end(body);
  const { trailers, headers: answered } = await readResponse(stream);
  if (trailers?.["grpc-status"] !== "0") {
    throw new Error(`a call went wrong: ${JSON.stringify({ answered, trailers })}`);
  }
}

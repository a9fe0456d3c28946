import { readAllBytes, type UniversalServerResponse } from "@connectrpc/connect/protocol";
import { universalResponseToNodeResponse } from "@connectrpc/connect-node";
import { asBuffer } from "../../../lib/bytes.js";
import type { Exchange } from "../../http/exchange.js";
import { Http2Exchange } from "../../http/http2-exchange.js";
import { toHeaderList } from "../call.js";

/** Discards the rest of a request stream after its response, and aborts it if the client keeps sending. */
export function discardBodyAfterResponse(exchange: Exchange): void {
  const { response } = exchange.native();
  const target = "stream" in response ? response.stream : response;
  target.once("finish", () => {
    // The client can finish sending and use the connection for its next request.
    exchange.discardBody();
    exchange.abortBodySoon();
  });
}

/**
 * Wraps a response stream. A client that does not read a part within
 * `writeTimeoutMs` milliseconds is disconnected, so that it cannot keep the stream
 * open forever. The source is closed whenever the response ends.
 */
export function sendStream(
  exchange: Exchange,
  universal: UniversalServerResponse,
  writeTimeoutMs: number,
): UniversalServerResponse {
  if (!universal.body) {
    return universal;
  }
  const { response } = exchange.native();
  const source = universal.body[Symbol.asyncIterator]();
  let writeTimer: NodeJS.Timeout | undefined;
  let isClosed = false;

  async function next(): Promise<IteratorResult<Uint8Array>> {
    clearTimeout(writeTimer);
    const result = await source.next();
    if (!result.done && !isClosed) {
      writeTimer = setTimeout(() => exchange.abortResponse(), writeTimeoutMs);
    }
    return result;
  }

  async function stop(): Promise<IteratorResult<Uint8Array>> {
    isClosed = true;
    clearTimeout(writeTimer);
    await source.return?.().catch(() => {});
    return { done: true, value: undefined };
  }

  response.once("close", stop);
  if (exchange.isClosed) {
    // It closed before the listener was added.
    stop();
  }
  return { ...universal, body: { [Symbol.asyncIterator]: () => ({ next, return: stop }) } };
}

/**
 * Sends a unary response of the library in one piece. A client that is still
 * sending when it sees an error may abort and lose the rest of the response.
 */
export async function sendBuffered(
  exchange: Exchange,
  universal: UniversalServerResponse,
): Promise<void> {
  const { status, header, body, trailer } = universal;
  if (trailer && !(exchange instanceof Http2Exchange)) {
    await universalResponseToNodeResponse(universal, exchange.native().response);
    return;
  }
  const bytes = body
    ? asBuffer(await readAllBytes(body, Number.MAX_SAFE_INTEGER))
    : Buffer.alloc(0);
  header?.delete("content-length");
  const headers = header ? toHeaderList(header) : [];
  if (!trailer || !(exchange instanceof Http2Exchange)) {
    exchange.send(status, headers, bytes);
  } else if (bytes.length > 0) {
    exchange.sendWithTrailers(headers, bytes, toHeaderList(trailer));
  } else {
    // In gRPC a response without a message has only trailers.
    exchange.sendTrailersOnly([...headers, ...toHeaderList(trailer)]);
  }
}

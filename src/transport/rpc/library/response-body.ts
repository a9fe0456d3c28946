import { constants } from "node:http2";
import { readAllBytes, type UniversalServerResponse } from "@connectrpc/connect/protocol";
import { universalResponseToNodeResponse } from "@connectrpc/connect-node";
import { asBuffer } from "../../../lib/bytes.js";
import type { Exchange } from "../../http/exchange.js";
import { Http2Exchange } from "../../http/http2-exchange.js";
import { listOf } from "../call.js";

/** Lets go of the rest of a stream that has its answer, and cuts off a sender that does not hang up. */
export function dropBodyWhenAnswered(exchange: Exchange): void {
  const { response } = exchange.native();
  const answer = "stream" in response ? response.stream : response;
  answer.once("finish", () => {
    // Its sender gets to the end of it, and may send its next request over the same connection.
    exchange.dropBody();
    exchange.cutOffBodySoon();
  });
}

/**
 * Takes what a stream sends to its caller, and cuts the caller off where it
 * does not take a part of it within `patience` milliseconds: it would hold on
 * to the stream for ever. However the answer ends, the stream ends with it.
 */
export function deliverStream(
  exchange: Exchange,
  answer: UniversalServerResponse,
  patience: number,
): UniversalServerResponse {
  if (!answer.body) {
    return answer;
  }
  const { connection } = exchange;
  const { response } = exchange.native();
  const source = answer.body[Symbol.asyncIterator]();
  let stalled: NodeJS.Timeout | undefined;
  let isClosed = false;

  async function next(): Promise<IteratorResult<Uint8Array>> {
    clearTimeout(stalled);
    const result = await source.next();
    if (!result.done && !isClosed) {
      stalled = setTimeout(cutOff, patience);
      connection.noteProgress();
    }
    return result;
  }

  async function leave(): Promise<IteratorResult<Uint8Array>> {
    isClosed = true;
    clearTimeout(stalled);
    await source.return?.().catch(() => {});
    return { done: true, value: undefined };
  }

  function cutOff(): void {
    if ("stream" in response) {
      response.stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
    } else {
      response.destroy();
    }
  }

  response.once("close", leave);
  if (exchange.isClosed) {
    // It closed before anyone listened for that.
    leave();
  }
  return { ...answer, body: { [Symbol.asyncIterator]: () => ({ next, return: leave }) } };
}

/**
 * Sends an answer of the protocol library that is no stream at once, with its
 * end: a caller that is still sending when it gets to see a refusal may break
 * off in a way that costs it the rest of the answer.
 */
export async function sendWhole(
  exchange: Exchange,
  answer: UniversalServerResponse,
): Promise<void> {
  const { status, header, body, trailer } = answer;
  if (trailer && !(exchange instanceof Http2Exchange)) {
    await universalResponseToNodeResponse(answer, exchange.native().response);
    return;
  }
  const bytes = body
    ? asBuffer(await readAllBytes(body, Number.MAX_SAFE_INTEGER))
    : Buffer.alloc(0);
  header?.delete("content-length");
  const headers = header ? listOf(header) : [];
  if (!trailer || !(exchange instanceof Http2Exchange)) {
    exchange.send(status, headers, bytes);
  } else if (bytes.length > 0) {
    exchange.sendWithTrailers(headers, bytes, listOf(trailer));
  } else {
    // In gRPC the trailers of an answer without a message are its headers.
    exchange.sendTrailersOnly([...headers, ...listOf(trailer)]);
  }
}

import { readAllBytes, type UniversalServerResponse } from "@connectrpc/connect/protocol";
import { universalResponseToNodeResponse } from "@connectrpc/connect-node";
import { asBuffer } from "../as-buffer.js";
import { listOf } from "./call-request.js";
import type { Exchange } from "./exchange.js";
import { Http2Exchange } from "./http2-exchange.js";

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

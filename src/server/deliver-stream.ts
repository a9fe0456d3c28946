import { constants } from "node:http2";
import type { UniversalServerResponse } from "@connectrpc/connect/protocol";
import type { Exchange } from "./http.js";

/**
 * Takes what a stream sends to its caller, and cuts the caller off where it
 * does not take a part of it within `patience` milliseconds: it would hold on
 * to the stream for ever. However the answer ends, the stream ends with it.
 */
export function deliverStream(
  { response }: Exchange,
  answer: UniversalServerResponse,
  patience: number,
): UniversalServerResponse {
  if (!answer.body) {
    return answer;
  }
  const source = answer.body[Symbol.asyncIterator]();
  let stalled: NodeJS.Timeout | undefined;
  let isClosed = false;

  async function next(): Promise<IteratorResult<Uint8Array>> {
    clearTimeout(stalled);
    const result = await source.next();
    if (!result.done && !isClosed) {
      stalled = setTimeout(cutOff, patience);
    }
    return result;
  }

  function cutOff(): void {
    if ("stream" in response) {
      response.stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
    } else {
      response.destroy();
    }
  }

  response.once("close", () => {
    isClosed = true;
    clearTimeout(stalled);
    source.return?.().catch(() => {});
  });
  return { ...answer, body: { [Symbol.asyncIterator]: () => ({ next }) } };
}

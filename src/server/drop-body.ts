import { constants } from "node:http2";
import type { Exchange, Request } from "./http.js";

/** How much of a body is read and dropped, so that its sender gets to see the answer. */
const patience = 8 * 1024 * 1024;

/** Lets go of what nobody will read of a body: a little more is dropped, then its sender is cut off. */
export function dropBody(request: Request): void {
  if (request.complete || request.destroyed) {
    return;
  }
  let dropped = 0;
  request.removeAllListeners("readable");
  request.on("error", () => {});
  request.on("data", (chunk: Buffer) => {
    dropped += chunk.length;
    if (dropped > patience) {
      cutOff(request);
    }
  });
  request.resume();
  cutOffSlow(request);
}

/** How long the sender of a body may take over HTTP/2. Over HTTP/1.1 Node sees to it. */
const longestBody = 30_000;

/** Cuts off the sender of a body that takes too long. */
export function cutOffSlow(request: Request): void {
  if ("stream" in request && !request.complete) {
    const timer = setTimeout(() => cutOff(request), longestBody);
    request.once("end", () => clearTimeout(timer));
    request.once("close", () => clearTimeout(timer));
  }
}

/** How long one that has its answer may take to hang up by itself. Trailers are on their way meanwhile. */
const farewell = 1_000;

/** Cuts off the sender of a stream that has its answer and does not hang up. */
export function cutOffWhenAnswered({ request, response }: Exchange): void {
  const answer = "stream" in response ? response.stream : response;
  answer.once("finish", () => setTimeout(() => cutOff(request), farewell).unref());
}

function cutOff(request: Request): void {
  if (request.complete) {
    return;
  }
  if ("stream" in request) {
    request.stream.close(constants.NGHTTP2_NO_ERROR);
    // What nobody reads would keep the stream open.
    request.removeAllListeners("readable");
    request.resume();
  } else {
    request.destroy();
  }
}

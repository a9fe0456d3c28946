import { bodyTooLarge, Problem } from "../../errors.js";
import { askForBody, type Exchange } from "../http.js";

/** Reads a whole body, or refuses one that is over the limit as soon as that is known. */
export function readBody(exchange: Exchange, limit: number): Promise<Buffer> {
  const { request } = exchange;
  if (Number(request.headers["content-length"] ?? 0) > limit) {
    return Promise.reject(bodyTooLarge(limit));
  }
  askForBody(exchange);
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    request.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size > limit) {
        request.removeAllListeners("data");
        reject(bodyTooLarge(limit));
      } else {
        chunks.push(chunk);
      }
    });
    request.on("end", () => resolve(Buffer.concat(chunks)));
    request.on("error", () => reject(cutOff()));
    request.on("close", () => {
      if (!request.readableEnded) {
        reject(cutOff());
      }
    });
  });
}

function cutOff(): Problem {
  return new Problem("canceled", "The request was cut off before its end.");
}

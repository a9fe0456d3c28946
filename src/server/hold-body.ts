import { overloaded } from "../errors.js";
import { areTooManyParts, inTooManyParts } from "./body-parts.js";
import { takeBodyTurn } from "./body-turn.js";
import { compact } from "./compact.js";
import type { Exchange } from "./exchange.js";
import { createUnfinished } from "./unfinished-message.js";

/** The types of content whose messages come in envelopes. */
const enveloped = /^application\/(grpc|connect\+)/i;

/**
 * Passes on what arrives of a body whose messages, of up to so many bytes, the
 * protocol library collects. Throws where there is no room beside all others
 * for what has come of a message and for all that was announced of it, for
 * which the library makes room at once.
 */
export async function* holdBody(
  parts: AsyncIterable<Buffer>,
  exchange: Exchange,
  limit: number,
): AsyncGenerator<Buffer> {
  const { "content-type": type = "", "content-length": length = "0" } = exchange.headers;
  const heldAfter = enveloped.test(type)
    ? createHeldMessage(limit)
    : createHeldBody(Number(length));
  let size = 0;
  for await (const part of parts) {
    size += part.length;
    if (!exchange.hold(heldAfter(part))) {
      throw overloaded();
    }
    yield compact(part);
  }
  await new Promise<void>((resolve) => takeBodyTurn(exchange.connection, size, resolve));
}

/** Of one that is too long nothing is kept. */
function createHeldMessage(limit: number): (part: Buffer) => number {
  const unfinishedAfter = createUnfinished();
  let count = 0;
  return (part) => {
    const { arrived, announced } = unfinishedAfter(part);
    const isOfOneBefore = arrived > part.length;
    count = isOfOneBefore ? count + 1 : 1;
    refuseSmallParts(count, arrived);
    return announced > limit ? 0 : arrived + announced;
  };
}

function createHeldBody(announced: number): (part: Buffer) => number {
  let arrived = 0;
  let count = 0;
  return (part) => {
    arrived += part.length;
    count++;
    refuseSmallParts(count, arrived);
    return arrived + announced;
  };
}

/** The library goes through all parts with each that comes. */
function refuseSmallParts(count: number, size: number): void {
  if (areTooManyParts(count, size)) {
    throw inTooManyParts();
  }
}

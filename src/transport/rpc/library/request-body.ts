import { overloaded } from "../../../errors.js";
import { compact } from "../../../lib/bytes.js";
import type { Timeout } from "../../../lib/timeout.js";
import { areTooManyParts, inTooManyParts, takeBodyTurn } from "../../http/body.js";
import type { Exchange } from "../../http/exchange.js";
import type { Http2Exchange } from "../../http/http2-exchange.js";
import { envelopeSize } from "../protocols/protocol.js";

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

/**
 * Passes on what arrives of a stream whose messages the protocol library
 * reads, and cuts its sender off where one that has begun does not end in time.
 */
export async function* cutOffSlowMessages(
  parts: AsyncIterable<Buffer>,
  exchange: Http2Exchange,
): AsyncGenerator<Buffer> {
  const unfinishedAfter = createUnfinished();
  const cutOff = () => exchange.cutOffBody();
  let timeout: Timeout | undefined;
  try {
    for await (const part of parts) {
      if (unfinishedAfter(part).arrived === 0) {
        timeout?.cancel();
        timeout = undefined;
      } else {
        timeout ??= exchange.bodyTimeouts.start(cutOff);
      }
      yield part;
    }
  } finally {
    timeout?.cancel();
  }
}

/** A message that has not ended; all of it is nothing where there is none. */
interface Unfinished {
  /** How many bytes of it have come, with its prefix. */
  readonly arrived: number;
  /** How long it will be, once that is known. */
  readonly announced: number;
}

/** Creates what tells after each part of a stream what has not ended. */
function createUnfinished(): (part: Buffer) => Unfinished {
  let prefix: Buffer = Buffer.alloc(0);
  let length = 0;
  let missing = 0;
  return (part) => {
    let at = 0;
    while (at < part.length) {
      if (missing > 0) {
        const taken = Math.min(missing, part.length - at);
        missing -= taken;
        at += taken;
        continue;
      }
      const end = at + envelopeSize - prefix.length;
      prefix = Buffer.concat([prefix, part.subarray(at, end)]);
      at = Math.min(end, part.length);
      if (prefix.length === envelopeSize) {
        length = prefix.readUInt32BE(1);
        missing = length;
        prefix = Buffer.alloc(0);
      }
    }
    return missing > 0
      ? { arrived: envelopeSize + length - missing, announced: length }
      : { arrived: prefix.length, announced: 0 };
  };
}

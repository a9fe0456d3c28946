import { hkdfSync } from "node:crypto";
import { invalidRequest } from "../errors.js";
import { keySize, open, seal } from "../lib/aead.js";
import { day } from "../lib/time-units.js";
import type { Clock } from "../store/port/store.js";

/**
 * Encrypts positions in a list or feed into opaque cursors. Callers cannot read
 * them, which would reveal the activity of other tenants, or forge them. A
 * cursor is valid only for its purpose and its scope: the tenant, and whatever
 * else of the request the position depends on.
 */
export interface CursorSealer {
  seal(scope: string, position: string): string;

  /** Returns the position. Throws if the cursor is not valid. */
  open(scope: string, text: string): string;
}

interface SealerOptions {
  /** Newest first. The first one encrypts; the others can still decrypt. */
  readonly peppers: readonly string[];
  readonly storeId: string;
  readonly clock: Clock;
}

/** The purpose of a cursor, and the error messages for invalid ones. */
interface CursorPurpose {
  /** Each purpose has its own encryption keys. */
  readonly purpose: string;
  readonly field: string;
  /** The message for a cursor that was not created for this purpose. */
  readonly refusal: string;
  /** How to proceed with a cursor that is too old. */
  readonly startAgain: string;
}

/** Creates the cursors of one purpose. */
export type CursorSealerFactory = (use: CursorPurpose) => CursorSealer;

const timestampSize = 6;
/** Positions are padded to multiples of this size, because the number of digits would reveal their magnitude. */
const blockSize = 48;

/** How long cursors of a replaced pepper stay valid, in milliseconds. */
const olderKeyGrace = day;

/**
 * Derives an encryption key from each pepper. If a pepper is empty, the key is
 * derived from the store id, which all instances share and no caller sees.
 */
export function createCursorSealerFactory({
  peppers,
  storeId,
  clock,
}: SealerOptions): CursorSealerFactory {
  return ({ purpose, field, refusal, startAgain }) => {
    const [newest, ...older] = peppers.map((pepper) =>
      Buffer.from(hkdfSync("sha256", pepper || storeId, storeId, `latchkey: ${purpose}`, keySize)),
    ) as [Buffer, ...Buffer[]];

    return {
      seal: (scope, position) => sealPosition(newest, scope, { position, at: clock() }),

      open(scope, text) {
        const bytes = Buffer.from(text, "base64url");
        if (bytes.toString("base64url") !== text) {
          throw invalidRequest({ field, message: refusal, code: "cursor" });
        }
        const opened = openPosition(newest, scope, bytes);
        if (opened) {
          return opened.position;
        }
        for (const key of older) {
          const opened = openPosition(key, scope, bytes);
          if (opened && clock() - opened.at <= olderKeyGrace) {
            return opened.position;
          }
          if (opened) {
            const message = `was created more than a day ago, before the service replaced its secret: ${startAgain}`;
            throw invalidRequest({ field, message, code: "cursor" });
          }
        }
        throw invalidRequest({ field, message: refusal, code: "cursor" });
      },
    };
  };
}

/** A position and the time when it was encrypted. */
interface TimedPosition {
  readonly position: string;
  readonly at: number;
}

function sealPosition(key: Buffer, scope: string, { position, at }: TimedPosition): string {
  const timestamp = Buffer.alloc(timestampSize);
  timestamp.writeUIntBE(at, 0, timestampSize);
  const parts = Math.floor(position.length / blockSize) + 1;
  const padded = position.padEnd(parts * blockSize, "\0");
  return seal(key, [timestamp, Buffer.from(padded)], Buffer.from(scope)).toString("base64url");
}

/** Returns `undefined` if the cursor was encrypted with another key or altered. */
function openPosition(key: Buffer, scope: string, sealed: Buffer): TimedPosition | undefined {
  const content = open(key, sealed, Buffer.from(scope));
  if (!content) {
    return undefined;
  }
  let end = content.length;
  while (end > timestampSize && content[end - 1] === 0) {
    end--;
  }
  const position = content.toString("utf8", timestampSize, end);
  return { position, at: content.readUIntBE(0, timestampSize) };
}

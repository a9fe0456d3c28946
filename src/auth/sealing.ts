import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";
import { invalidRequest } from "../errors.js";
import type { Clock } from "../store/port/store.js";

/**
 * Seals places in a list or a feed into texts for callers. A sealed place
 * cannot be read, which would tell how much happens in other tenants, nor made
 * up, and opens only for the tenant and the use that it was sealed for.
 */
export interface SealedPlaces {
  seal(tenantId: string, place: string): string;

  /** Answers the place, or throws what is wrong with the text. */
  open(tenantId: string, text: string): string;
}

interface SealOptions {
  /** Newest first. The first one seals, the others still open. */
  readonly peppers: readonly string[];
  readonly storeId: string;
  readonly clock: Clock;
}

/** What a text is used for, and how one that does not open is refused. */
interface SealUse {
  /** Each purpose has keys of its own. */
  readonly purpose: string;
  readonly field: string;
  /** What is wrong with a text that was not sealed for this. */
  readonly refusal: string;
  /** What to do with one that was sealed too long ago. */
  readonly startAgain: string;
}

/** Creates the sealed places of one use. */
export type SealPlaces = (use: SealUse) => SealedPlaces;

const algorithm = "aes-256-gcm";
const keySize = 32;
const nonceSize = 12;
const tagSize = 16;
const momentSize = 6;
/** Places are made equally long, or multiples of it: how many digits a number has would tell how large it is. */
const placeSize = 48;

/** How long what an older key sealed still opens, in milliseconds. */
const olderKeyGrace = 24 * 3_600_000;

/**
 * Creates what seals. Each pepper gives a key. Where it is the empty text, the
 * id of the store gives it, which all instances know and no caller does.
 */
export function createSealPlaces({ peppers, storeId, clock }: SealOptions): SealPlaces {
  return ({ purpose, field, refusal, startAgain }) => {
    const [newest, ...older] = peppers.map((pepper) =>
      Buffer.from(hkdfSync("sha256", pepper || storeId, storeId, `latchkey: ${purpose}`, keySize)),
    ) as [Buffer, ...Buffer[]];

    return {
      seal: (tenantId, place) => seal(newest, tenantId, { place, at: clock() }),

      open(tenantId, text) {
        const bytes = Buffer.from(text, "base64url");
        if (bytes.toString("base64url") !== text) {
          throw invalidRequest({ field, message: refusal });
        }
        const sealed = unseal(newest, tenantId, bytes);
        if (sealed) {
          return sealed.place;
        }
        for (const key of older) {
          const sealed = unseal(key, tenantId, bytes);
          if (sealed && clock() - sealed.at <= olderKeyGrace) {
            return sealed.place;
          }
          if (sealed) {
            const why = "was made more than a day ago, with a key that was replaced since";
            throw invalidRequest({ field, message: `${why}: ${startAgain}` });
          }
        }
        throw invalidRequest({ field, message: refusal });
      },
    };
  };
}

/** A place, and the moment when it was sealed. */
interface DatedPlace {
  readonly place: string;
  readonly at: number;
}

function seal(key: Buffer, tenantId: string, { place, at }: DatedPlace): string {
  const moment = Buffer.alloc(momentSize);
  moment.writeUIntBE(at, 0, momentSize);
  const parts = Math.floor(place.length / placeSize) + 1;
  const padded = place.padEnd(parts * placeSize, "\0");
  const nonce = randomBytes(nonceSize);
  const cipher = createCipheriv(algorithm, key, nonce, { authTagLength: tagSize });
  cipher.setAAD(Buffer.from(tenantId));
  const sealed = [cipher.update(moment), cipher.update(padded), cipher.final()];
  return Buffer.concat([nonce, cipher.getAuthTag(), ...sealed]).toString("base64url");
}

/** Answers `undefined` where another key sealed it, or it was changed. */
function unseal(key: Buffer, tenantId: string, sealed: Buffer): DatedPlace | undefined {
  const nonce = sealed.subarray(0, nonceSize);
  const tag = sealed.subarray(nonceSize, nonceSize + tagSize);
  try {
    const decipher = createDecipheriv(algorithm, key, nonce, { authTagLength: tagSize });
    decipher.setAAD(Buffer.from(tenantId)).setAuthTag(tag);
    const opened = decipher.update(sealed.subarray(nonceSize + tagSize));
    const content = Buffer.concat([opened, decipher.final()]);
    let end = content.length;
    while (end > momentSize && content[end - 1] === 0) {
      end--;
    }
    const place = content.toString("utf8", momentSize, end);
    return { place, at: content.readUIntBE(0, momentSize) };
  } catch {
    return undefined;
  }
}

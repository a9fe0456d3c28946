import { keyLength, parseKey } from "./key-format.js";

/** The credentials of a refused request. */
export interface RefusedCredentials {
  /** The header for the key. */
  readonly keyHeader: string;
  /** The key that was sent: the empty string without one, or absent if it was valid before. */
  readonly key?: string | undefined;
  /** Whether several keys were sent. */
  readonly isRepeated?: boolean;
  /** Whether an `Authorization` header was sent to a call that does not read it. */
  readonly hasUnreadAuthorization?: boolean;
  /** Whether `Authorization: Bearer` may carry the key, too. */
  readonly bearer?: boolean;
  /** Whether the key may be the password of `Authorization: Basic`, too. */
  readonly basic?: boolean;
}

/**
 * The response to an invalid key, from the service and from guards. It depends only
 * on the form of the key: all keys of the right form get the same one.
 */
export function invalidKeyResponse(refused: RefusedCredentials) {
  const { keyHeader, bearer = false, basic = false } = refused;
  const schemes = [...(bearer ? ["Bearer"] : []), ...(basic ? ["Basic"] : [])];
  const places = [`the ${keyHeader} header`, ...schemes.map((name) => `Authorization: ${name}`)];
  const challenges = [
    `ApiKey realm="latchkey", header="${keyHeader}"`,
    ...schemes.map((name) => `${name} realm="latchkey"`),
  ];
  return {
    detail: `${describe(refused)} Send the key of an application or session in ${places.join(" or ")}.`,
    headers: { "www-authenticate": challenges.join(", ") },
  };
}

function describe({
  key,
  isRepeated = false,
  hasUnreadAuthorization = false,
}: RefusedCredentials): string {
  if (isRepeated) {
    return "The request has several keys: send one.";
  }
  if (key === "") {
    return hasUnreadAuthorization
      ? "The key is in Authorization, which this call does not read."
      : "The request has no key.";
  }
  if (key !== undefined && !key.startsWith("lk_")) {
    return "This is not a Latchkey key (they start with lk_), and no imported key matches.";
  }
  const parsed = key === undefined ? undefined : parseKey(key);
  if (key !== undefined && !parsed) {
    return `The key is incomplete or mistyped: its checksum is wrong. Copy all ${keyLength} characters.`;
  }
  return parsed?.type === "non"
    ? "This is the nonce of a session and not a key: it only authorizes the session."
    : "The key is not valid: it may be replaced, revoked, expired, disabled or deleted.";
}

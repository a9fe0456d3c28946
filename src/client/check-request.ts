import { hash } from "node:crypto";
import type { DecidedBy } from "../../gen/latchkey/v1/access_service_pb.js";
import { parseKey } from "../contract/key-format.js";

/** A question to the service, as it was when it was asked. */
export interface Question {
  /** What it is known by, wherever the key came from. */
  readonly id: string;
  readonly key: string;
  readonly permission: string;
  readonly token: Token | undefined;
  readonly place: Place;
}

/** Why there is nothing to ask the service: what it would say is known. */
export interface Unaskable {
  readonly reason: "unknown_key" | "invalid_request";
  readonly detail: string;
}

const noKey: Unaskable = {
  reason: "unknown_key",
  detail: "The key is not in the form of a key.",
};

/** More than the service takes of any text, in UTF-16 units. */
const longestText = 1_000;

/**
 * Reads what a caller asks, of whatever types. All that the answer depends on
 * is copied: what the caller does to its token later must not change what the
 * answer is about.
 */
export function readQuestion(
  key: unknown,
  permission: unknown,
  token: unknown,
  place: unknown,
): Question | Unaskable {
  if (!isText(key)) {
    return noKey;
  }
  if (!isText(permission)) {
    return invalid("The permission must be a text, for example token:read.");
  }
  const copy = copyToken(token);
  if (copy === "invalid") {
    return invalid("The token must have an id, a container or both, each a text.");
  }
  const copiedPlace = copyPlace(place);
  if (copiedPlace === "invalid") {
    return invalid("The origin and the address that a key came from must be texts.");
  }
  const id = questionId([key, permission, copy && "token", copy?.id, copy?.container]);
  return { id, key, permission, token: copy, place: copiedPlace };
}

/** What a question is known by, made of all that it is about. It is a hash: no key is kept. */
export function questionId(parts: readonly (string | undefined)[]): string {
  return hash("sha256", JSON.stringify(parts), "base64");
}

/** Of a place, all of it. */
export const everything = { dependsOnOrigin: true, dependsOnAddress: true };

/** What a question is known by together with as much of its place as the answer depends on. */
export function placedId(
  { id, place }: Question,
  { dependsOnOrigin, dependsOnAddress }: Pick<GuardAnswer, "dependsOnOrigin" | "dependsOnAddress">,
): string {
  const { origin, address } = place;
  return JSON.stringify([id, dependsOnOrigin && origin, dependsOnAddress && address]);
}

/**
 * The id of the application or session that a question is about. It is looked
 * at only where the answer is not known already: it costs more than all else.
 */
export function subjectIn({ key }: Question): string | Unaskable {
  const parsed = parseKey(key);
  return parsed && parsed.kind !== "non" ? parsed.id : noKey;
}

function copyToken(token: unknown): Token | undefined | "invalid" {
  if (token === undefined || token === null) {
    return undefined;
  }
  if (typeof token !== "object") {
    return "invalid";
  }
  const { id, container } = token as Record<string, unknown>;
  const isValid = [id, container].every((value) => value === undefined || isText(value));
  if (!isValid || (id === undefined && container === undefined)) {
    return "invalid";
  }
  return { ...(isText(id) && { id }), ...(isText(container) && { container }) };
}

const nowhere: Place = {};

/**
 * A text that is no text to the service comes from a caller, and is as good as
 * none: only keys that may be used from some places are refused for it.
 */
function copyPlace(place: unknown): Place | "invalid" {
  if (place === undefined || place === null) {
    return nowhere;
  }
  if (typeof place !== "object") {
    return "invalid";
  }
  const { origin, address } = place as Record<string, unknown>;
  if (![origin, address].every((it) => it === undefined || it === null || typeof it === "string")) {
    return "invalid";
  }
  return { ...(isText(origin) && { origin }), ...(isText(address) && { address }) };
}

/** Whether it is a text that reaches the service as it is: half a character would become another one. */
function isText(value: unknown): value is string {
  return typeof value === "string" && value.length <= longestText && value.isWellFormed();
}

function invalid(detail: string): Unaskable {
  return { reason: "invalid_request", detail };
}

/** What rules look at in a token. */
export interface Token {
  readonly id?: string;
  readonly container?: string;
}

/** From where a key came to your service, as far as you know. */
export interface Place {
  /** The `Origin` header that came with it. */
  readonly origin?: string | undefined;
  /** The address that it came from. */
  readonly address?: string | undefined;
}

/** Whether a key may do something, why, and how fresh the knowledge is. */
export interface GuardAnswer {
  readonly allowed: boolean;
  /** How much of the token may be shown: `redact`, `mask` or `reveal`. Absent where it may not. */
  readonly transform?: string | undefined;
  /** The grant that decided. Absent where it may not. */
  readonly decidedBy?: DecidedBy | undefined;
  /**
   * Why it may not: a word of the service, or `unavailable` where the service
   * cannot be asked.
   */
  readonly reason?: string | undefined;
  /** Why it may not, in a sentence. */
  readonly detail?: string | undefined;
  readonly applicationId?: string | undefined;
  readonly sessionId?: string | undefined;
  /** The application that authorized the session. */
  readonly authorizedBy?: string | undefined;
  /** Which of them decided, where the key is that of a session: what it was granted, or what its authorizer is. */
  readonly limitedBy?: string | undefined;
  readonly expiresAt?: Date | undefined;
  /** Whether the answer is about this origin only. Absent where it is not. */
  readonly dependsOnOrigin?: boolean | undefined;
  /** Whether the answer is about this address only. Absent where it is not. */
  readonly dependsOnAddress?: boolean | undefined;
  /** Where the answer comes from: the cache, the service, or the guard by itself. */
  readonly source: "cache" | "service" | "guard";
  /**
   * How old the knowledge behind the answer may be at most, in milliseconds: a
   * change that was acknowledged earlier than that is in it.
   */
  readonly staleness: number;
}

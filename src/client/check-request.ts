import { hash } from "node:crypto";
import { parseKey } from "../contract/key-format.js";
import { canonicalAddress } from "../lib/networks.js";
import type { Decision } from "./decision.js";

/** A token: a data item in the vault of your service, not a credential. */
export interface Token {
  readonly id?: string;
  readonly container?: string;
}

/** Where a key was used, as far as your service knows. */
export interface RequestContext {
  /** The `Origin` header of the request. */
  readonly origin?: string | undefined;
  /** The IP address of the client, with or without a port. */
  readonly address?: string | undefined;
}

/** A validated copy of the arguments of a check. */
export interface CheckRequest {
  /** Identifies the check, apart from its context. */
  readonly id: string;
  readonly key: string;
  readonly permission: string;
  readonly token: Token | undefined;
  readonly context: RequestContext;
}

/** Why a check is denied without a call to the service. */
interface InvalidCheck {
  readonly reason: "unknown_key" | "invalid_request";
  readonly detail: string;
}

const malformedKey: InvalidCheck = {
  reason: "unknown_key",
  detail: "The key is malformed.",
};

const missingKey: InvalidCheck = { reason: "unknown_key", detail: "The request has no key." };

/** In UTF-16 units; longer than any text that the service accepts. */
const maxTextLength = 1_000;

/**
 * Validates the arguments of a check, which may have any type. Copies them, so
 * that a later change to the token does not change the cached decision.
 */
export function parseCheckRequest(
  key: unknown,
  permission: unknown,
  token: unknown,
  context: unknown,
): CheckRequest | InvalidCheck {
  if (!isText(key) || key === "") {
    return key === undefined || key === "" ? missingKey : malformedKey;
  }
  if (!isText(permission)) {
    return invalid("The permission must be a string, for example token:read.");
  }
  const tokenCopy = copyToken(token);
  if (tokenCopy === "invalid") {
    return invalid("The token must have an id, a container or both, each a string.");
  }
  const contextCopy = copyContext(context);
  if (contextCopy === "invalid") {
    return invalid("The origin and the address must be strings.");
  }
  const id = hashParts([
    key,
    permission,
    tokenCopy && "token",
    tokenCopy?.id,
    tokenCopy?.container,
  ]);
  return { id, key, permission, token: tokenCopy, context: contextCopy };
}

/** Identifies a check by its parts. A hash, so that no key stays in memory. */
export function hashParts(parts: readonly (string | undefined)[]): string {
  return hash("sha256", JSON.stringify(parts), "base64");
}

/** The whole context of a check. */
export const fullContext = { dependsOnOrigin: true, dependsOnAddress: true };

/** Identifies a check together with the part of its context that matters. */
export function contextualId(
  { id, context }: CheckRequest,
  { dependsOnOrigin, dependsOnAddress }: Pick<Decision, "dependsOnOrigin" | "dependsOnAddress">,
): string {
  const { origin, address } = context;
  return JSON.stringify([id, dependsOnOrigin && origin, dependsOnAddress && withoutPort(address)]);
}

/** The port of a client changes with each connection and decides nothing. */
function withoutPort(address: string | undefined): string | undefined {
  return address === undefined ? undefined : (canonicalAddress(address) ?? address);
}

/** The id of the application or session of the key. Called only on a cache miss: parsing is expensive. */
export function principalIdOf({ key }: CheckRequest): string | InvalidCheck {
  const parsed = parseKey(key);
  return parsed && parsed.type !== "non" ? parsed.id : malformedKey;
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

const emptyContext: RequestContext = {};

/**
 * Clients control the origin, so an invalid one is omitted, not an error: then
 * only keys that are restricted to origins or networks are denied.
 */
function copyContext(context: unknown): RequestContext | "invalid" {
  if (context === undefined || context === null) {
    return emptyContext;
  }
  if (typeof context !== "object") {
    return "invalid";
  }
  const { origin, address } = context as Record<string, unknown>;
  if (![origin, address].every((it) => it === undefined || it === null || typeof it === "string")) {
    return "invalid";
  }
  return { ...(isText(origin) && { origin }), ...(isText(address) && { address }) };
}

/** Whether UTF-8 preserves the string: a lone surrogate would become another character. */
function isText(value: unknown): value is string {
  return typeof value === "string" && value.length <= maxTextLength && value.isWellFormed();
}

function invalid(detail: string): InvalidCheck {
  return { reason: "invalid_request", detail };
}

import { createHash } from "node:crypto";
import { type FieldViolation, invalidRequest } from "./errors.js";
import { idFromBytes, idToBytes } from "./ids.js";
import type { ListOrder, Place } from "./store/store.js";

const idSize = 16;
const sealSize = 4;

/** The lists that there are cursors of, and what a place in each has beside the id. */
const valueKinds = {
  newest: "none",
  name: "text",
  expires_at: "number",
  last_used_at: "number",
  sessions: "none",
} as const satisfies Record<ListOrder | "sessions", string>;

export type CursorList = keyof typeof valueKinds;

/** How many items a page holds where the caller does not say. */
export const defaultPageSize = 20;

/**
 * The place after an item in a list of a tenant, as a text that callers only
 * hand back. The seal lets a damaged one, or one of another tenant or list, be
 * told from a good one; there is nothing to gain by forging it.
 */
export function encodeCursor(tenantId: string, { after, value }: Place, list: CursorList): string {
  const bytes = Buffer.concat([idToBytes(after), toBytes(value)]);
  return Buffer.concat([bytes, sealOf(tenantId, list, bytes)]).toString("base64url");
}

/** What is said to a `start` that is not of the list. */
export const cursorRefusal: FieldViolation = {
  field: "start",
  message: "is not a cursor of this list: pass the pagination.next of an earlier answer",
};

/** The place in the `start` of a request, or throws what is wrong with it. */
export function readStart(tenantId: string, start: string, list: CursorList): Place {
  const bytes = Buffer.from(start, "base64url");
  const content = bytes.subarray(0, -sealSize);
  const isOurs =
    content.length >= idSize &&
    bytes.toString("base64url") === start &&
    sealOf(tenantId, list, content).equals(bytes.subarray(-sealSize));
  const place = isOurs ? readPlace(content, valueKinds[list]) : undefined;
  if (!place) {
    throw invalidRequest(cursorRefusal);
  }
  return place;
}

/** In the order of age there is no value beside the id. */
function toBytes(value: Place["value"]): Buffer {
  return Buffer.from(value === undefined ? "" : String(value));
}

/** The seal can be made by anybody: what a place holds is taken for no more than it may be. */
function readPlace(content: Buffer, kind: (typeof valueKinds)[CursorList]): Place | undefined {
  const after = idFromBytes(content);
  const text = content.subarray(idSize).toString();
  switch (kind) {
    case "none":
      return text === "" ? { after } : undefined;
    case "number":
      return /^\d{1,15}$/.test(text) ? { after, value: Number(text) } : undefined;
    case "text":
      return { after, value: text };
  }
}

function sealOf(tenantId: string, list: CursorList, bytes: Buffer): Buffer {
  const hash = createHash("sha256").update(`${tenantId}/${list}/`).update(bytes);
  return hash.digest().subarray(0, sealSize);
}

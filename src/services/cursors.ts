import type { SealedPlaces, SealPlaces } from "../auth/sealing.js";
import { invalidRequest } from "../errors.js";
import type { ListOrder, Place } from "../store/port/store.js";

/** The lists of applications and sessions, and what a place in each has beside the id. */
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

/** The places after items in a list, as texts that callers only hand back. */
export interface Cursors {
  encode(tenantId: string, place: Place): string;

  /** The place in the `start` of a request, or throws what is wrong with it. */
  read(tenantId: string, start: string): Place;
}

const refusal = "is not a cursor of this list: pass the pagination.next of an earlier answer";

/** What seals the cursors of a list. */
export function sealCursors(sealPlaces: SealPlaces, list: CursorList | "events") {
  return sealPlaces({
    purpose: `cursor of ${list}`,
    field: "start",
    refusal,
    startAgain: "start again with the first page",
  });
}

/** Creates the cursors of a list of applications or sessions. */
export function createCursors(sealPlaces: SealPlaces, list: CursorList): Cursors {
  const sealed = sealCursors(sealPlaces, list);
  return {
    encode: (tenantId, { after, value }) => sealed.seal(tenantId, `${after}${value ?? ""}`),

    read(tenantId, start) {
      const place = readPlace(sealed.open(tenantId, start), valueKinds[list]);
      if (!place) {
        throw invalidRequest({ field: "start", message: refusal });
      }
      return place;
    },
  };
}

const idLength = 36;

/** Only the service seals, but what a place holds goes to the database: it is taken for no more than it may be. */
function readPlace(text: string, kind: (typeof valueKinds)[CursorList]): Place | undefined {
  const after = text.slice(0, idLength);
  const value = text.slice(idLength);
  switch (kind) {
    case "none":
      return value === "" ? { after } : undefined;
    case "number":
      return /^\d{1,15}$/.test(value) ? { after, value: Number(value) } : undefined;
    case "text":
      return { after, value };
  }
}

/** What can be watched. */
type Feed = "credentials" | "events";

/** Creates the tokens of those who watch, to go on from where they were. */
export function createResumeTokens(sealPlaces: SealPlaces, feed: Feed): SealedPlaces {
  return sealPlaces({
    purpose: `resume token of ${feed}`,
    field: "resume_token",
    refusal:
      "is not one of this service and tenant, or was changed: " +
      "pass the resume_token of an earlier message, or none to watch from now",
    startAgain: "pass none to watch from now",
  });
}

import { mayBeForeignKey } from "../keys.js";

/** Tells a path, or another word of a request, as it may be told: without a key that was pasted into it. */
export type WithoutSecrets = (text: string) => string;

const ownKey = /(?:[A-Za-z0-9]|%[0-9A-Fa-f]{2}){30,}/g;
/** A segment of a path, with what is encoded in it counted as one character. */
const segment = /(?:[^/%]|%[0-9A-Fa-f]{2}|%)+/g;

/**
 * Creates a mask of keys, encoded or not. Keys that were made elsewhere have no
 * form of their own: where those are accepted, every segment that is long enough
 * for one is left out, unless it is a UUID.
 */
export function createWithoutSecrets(foreignKeys: boolean): WithoutSecrets {
  const withoutOwn: WithoutSecrets = (text) => text.replaceAll(ownKey, "…");
  return foreignKeys
    ? (text) => withoutOwn(text.replaceAll(segment, (it) => (mayBeForeignKey(it) ? "…" : it)))
    : withoutOwn;
}

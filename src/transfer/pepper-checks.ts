import { createHmac } from "node:crypto";

/** What is hashed under each pepper, to tell it from others without telling what it is. */
const fixedText = "latchkey: a check of the pepper";

/** A value for each pepper that hashes may have been made with. No pepper, which is the empty text, has one, too. */
export function pepperChecks(peppers: readonly string[]): string[] {
  return peppers.map((pepper) => createHmac("sha256", pepper).update(fixedText).digest("base64"));
}

/** The places, counted from one, of the peppers behind these checks that are unknown here. */
export function unknownPeppers(checks: readonly string[], peppers: readonly string[]): number[] {
  const known = new Set(pepperChecks(peppers));
  return checks.flatMap((check, at) => (known.has(check) ? [] : [at + 1]));
}

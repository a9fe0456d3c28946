import { memoize } from "../lib/cache.js";

/**
 * Compiles an RE2 pattern of a rule for the JavaScript engine. The one that protovalidate
 * includes takes a second to compile Unicode classes and would block the event loop.
 */
export const regExpOf = memoize((pattern: string) => {
  // RE2 and JavaScript spell this one escape differently.
  return new RegExp(pattern.replaceAll(String.raw`\x{`, String.raw`\u{`), "u");
});

export function matchesPattern(pattern: string, text: string): boolean {
  return regExpOf(pattern).test(text);
}

import { NotUnderstood } from "./quick-test.js";

/** A pattern that a JavaScript engine can try. */
export interface QuickPattern {
  readonly regExp: RegExp;
  /** Whether it matches all that the pattern matches. If not it matches less, never more. */
  readonly isExact: boolean;
}

const escaped = String.raw`\\(?:[nt]|p\{[A-Z][a-z]?\}|x\{[0-9A-F]{1,6}\})`;
const characterClass = String.raw`\[\^?(?:${escaped}|[^\\[\]^])+\]`;
const others = String.raw`[A-Za-z0-9_/: -]|\((?!\?)|[)|*+?^$]|\{\d+(?:,\d*)?\}`;

/** What means the same in RE2 and in JavaScript, spelled in RE2. */
const token = new RegExp(`${characterClass}|${others}`, "y");

/** The tables of characters of the two engines may be of different years, but not up to here. */
const beyondLatin1 = String.raw`\u{100}-\u{10FFFF}`;

/**
 * Translates a pattern of RE2, in which rules are written, to JavaScript,
 * which tries it twenty times as fast. Throws `NotUnderstood` where the
 * pattern has something that may not mean the same.
 */
export function readPattern(pattern: string): QuickPattern {
  let source = "";
  let isExact = true;
  for (let at = 0; at < pattern.length; at = token.lastIndex) {
    token.lastIndex = at;
    const part = token.exec(pattern)?.[0];
    if (part === undefined) {
      throw new NotUnderstood();
    }
    const namesCategory = part.includes(String.raw`\p`);
    if (namesCategory && !part.startsWith("[^")) {
      throw new NotUnderstood();
    }
    isExact &&= !namesCategory;
    source += namesCategory ? `${translate(part).slice(0, -1)}${beyondLatin1}]` : translate(part);
  }
  return { regExp: compile(source), isExact };
}

/** Nobody asks what was found in a group, so that it need not be kept. */
function translate(part: string): string {
  return part === "(" ? "(?:" : part.replaceAll(String.raw`\x{`, String.raw`\u{`);
}

function compile(source: string): RegExp {
  try {
    return new RegExp(source, "u");
  } catch {
    throw new NotUnderstood();
  }
}

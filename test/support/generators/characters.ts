import fc from "fast-check";

/**
 * Any code point that a text may hold, for `fc.string({ unit: anyCharacter })`.
 * The unit "binary" of fast-check is the same, and takes a second to make.
 */
export const characters = fc
  .oneof(
    fc.integer({ min: 0, max: 0x7f }),
    fc.integer({ min: 0x80, max: 0xd7ff }),
    fc.integer({ min: 0xe000, max: 0x10ffff }),
  )
  .map((code) => String.fromCodePoint(code));

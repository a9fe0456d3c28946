import fc from "fast-check";

/**
 * Any valid code point, for `fc.string({ unit: characters })`. Equals fast-check's
 * unit "binary", which takes a second to create.
 */
export const characters = fc
  .oneof(
    fc.integer({ min: 0, max: 0x7f }),
    fc.integer({ min: 0x80, max: 0xd7ff }),
    fc.integer({ min: 0xe000, max: 0x10ffff }),
  )
  .map((code) => String.fromCodePoint(code));

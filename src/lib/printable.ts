/** Control and format characters, which include terminal escapes and text direction marks. */
const unprintable = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Escapes untrusted text so that it cannot control the terminal. */
export function escapeUnprintable(text: string): string {
  return text.replaceAll(
    unprintable,
    (character) => `\\u{${(character.codePointAt(0) as number).toString(16)}}`,
  );
}

/** What a terminal would obey rather than show, and what turns the direction of a text. */
const unseen = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Makes text of a file fit to be shown in a terminal. */
export function visible(text: string): string {
  return text.replaceAll(
    unseen,
    (character) => `\\u{${(character.codePointAt(0) as number).toString(16)}}`,
  );
}

const segmenter = new Intl.Segmenter("en", { granularity: "grapheme" });

const mark = /^[\p{M}\p{Cf}]/u;
/** What a terminal shows in two cells: emoji, and the scripts of East Asia. */
const wide =
  /^[\p{Emoji_Presentation}\p{sc=Han}\p{sc=Hangul}\p{sc=Hiragana}\p{sc=Katakana}\u3000-\u303e\uff01-\uff60\uffe0-\uffe6]|\ufe0f/u;

/** How many cells of a terminal a text takes. */
export function textWidth(text: string): number {
  let width = 0;
  for (const { segment } of segmenter.segment(text)) {
    width += widthOf(segment);
  }
  return width;
}

/** A text that takes so many cells at most, with a sign where something is left out. */
export function cutText(text: string, most: number): string {
  if (text.length <= most && textWidth(text) <= most) {
    return text;
  }
  let kept = "";
  let width = 0;
  for (const { segment } of segmenter.segment(text)) {
    width += widthOf(segment);
    if (width > most - 1) {
      return most > 0 ? `${kept}…` : "";
    }
    kept += segment;
  }
  return kept;
}

export function padText(text: string, width: number): string {
  return text + " ".repeat(Math.max(0, width - textWidth(text)));
}

/** The lines of a text, broken between words where one would take more cells. */
export function wrapText(text: string, most: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    const longer = line === "" ? word : `${line} ${word}`;
    if (line !== "" && textWidth(longer) > most) {
      lines.push(line);
      line = word;
    } else {
      line = longer;
    }
  }
  return [...lines, line];
}

function widthOf(segment: string): number {
  return mark.test(segment) ? 0 : wide.test(segment) ? 2 : 1;
}

const segmenter = new Intl.Segmenter("en", { granularity: "grapheme" });

const zeroWidth = /^[\p{M}\p{Cf}]/u;
/** Emoji and East Asian characters take two columns. */
const doubleWidth =
  /^[\p{Emoji_Presentation}\p{sc=Han}\p{sc=Hangul}\p{sc=Hiragana}\p{sc=Katakana}\u3000-\u303e\uff01-\uff60\uffe0-\uffe6]|\ufe0f/u;

/**
 * The width of text in terminal columns. A package such as string-width would
 * be one more dependency of the service.
 */
export function textWidth(text: string): number {
  let width = 0;
  for (const { segment } of segmenter.segment(text)) {
    width += graphemeWidth(segment);
  }
  return width;
}

/** Cuts text that is too wide, and marks the cut with an ellipsis. */
export function truncateText(text: string, maxWidth: number): string {
  if (text.length <= maxWidth && textWidth(text) <= maxWidth) {
    return text;
  }
  let truncated = "";
  let width = 0;
  for (const { segment } of segmenter.segment(text)) {
    width += graphemeWidth(segment);
    if (width > maxWidth - 1) {
      return maxWidth > 0 ? `${truncated}…` : "";
    }
    truncated += segment;
  }
  return truncated;
}

export function padText(text: string, width: number): string {
  return text + " ".repeat(Math.max(0, width - textWidth(text)));
}

/** Breaks text into lines between words. */
export function wrapText(text: string, maxWidth: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    const longer = line === "" ? word : `${line} ${word}`;
    if (line !== "" && textWidth(longer) > maxWidth) {
      lines.push(line);
      line = word;
    } else {
      line = longer;
    }
  }
  return [...lines, line];
}

function graphemeWidth(grapheme: string): number {
  return zeroWidth.test(grapheme) ? 0 : doubleWidth.test(grapheme) ? 2 : 1;
}

const segmenter = new Intl.Segmenter("en", { granularity: "grapheme" });

const zeroWidth = /^[\p{M}\p{Cf}]/u;
/**
 * Emoji, and the ranges that Unicode's EastAsianWidth.txt calls wide or fullwidth, take two columns. So does a
 * halfwidth character with a sound mark, which is one grapheme.
 */
const doubleWidth =
  /^[\p{Emoji_Presentation}\u1100-\u115f\u2329\u232a\u2e80-\u303e\u3041-\u3247\u3250-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{16fe0}-\u{18dff}\u{1aff0}-\u{1b2ff}\u{1f200}-\u{1f2ff}\u{20000}-\u{3fffd}]|\ufe0f|.[\uff9e\uff9f]/u;

/** The width of text in terminal columns. */
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

/** Spreadsheets run a cell that starts with one of these as a formula. */
const formulaStart = /^[\s\p{Cc}]*[=+\-@\t\r＝＋－＠]/u;

/** Without it at the start of a file, Excel does not read the file as UTF-8. */
export const byteOrderMark = "\ufeff";

/** Rows of cells as CSV, quoted as RFC 4180 describes. */
export function toCsv(rows: readonly (readonly unknown[])[]): string {
  return rows.map((row) => `${row.map(toCell).join(",")}\r\n`).join("");
}

/** An apostrophe makes a spreadsheet show the cell as text. */
function toCell(value: unknown): string {
  const text = value === undefined ? "" : String(value);
  const safe = formulaStart.test(text) ? `'${text}` : text;
  return `"${safe.replaceAll('"', '""')}"`;
}

import { describe, expect, it } from "@jest/globals";
import { colorsFor } from "../../src/cli/output.js";
import { type Column, formatDetails, formatTable } from "../../src/cli/table.js";
import { textWidth, truncateText, wrapText } from "../../src/cli/text.js";

interface Row {
  readonly id: string;
  readonly name: string;
  readonly note: string;
}

const plain = colorsFor({ isTTY: false }, { colors: undefined });
const columns: readonly Column<Row>[] = [
  { title: "ID", text: ({ id }) => id },
  { title: "NAME", text: ({ name }) => name, shrinkTo: 30 },
  { title: "NOTE", text: ({ note }) => note, optional: true },
];
const rows = [
  { id: "1", name: "Web shop", note: "old" },
  { id: "22", name: "店 of the East", note: "new" },
];

describe("formatTable", () => {
  it("aligns columns with wide characters", () => {
    expect(formatTable(columns, rows, { colors: plain })).toBe(
      "ID  NAME            NOTE\n1   Web shop        old\n22  店 of the East  new\n",
    );
  });

  it("omits optional columns to fit the width, then truncates shrinkable ones", () => {
    expect(formatTable(columns, rows, { colors: plain, width: 23 })).toBe(
      "ID  NAME\n1   Web shop\n22  店 of the East\n",
    );
    expect(formatTable(columns, rows, { colors: plain, width: 17 })).toBe(
      "ID  NAME\n1   Web shop\n22  店 of the Ea…\n",
    );
    const narrow = formatTable(columns, rows, { colors: plain, width: 9 });
    expect(narrow.split("\n").map(textWidth)).toEqual([8, 9, 9, 0]);
  });

  it("truncates optional columns before others", () => {
    const long = [{ id: "1", name: "N".repeat(40), note: "n".repeat(40) }];
    const shrinking = columns.map((column) =>
      column.optional ? { ...column, shrinkTo: 12 } : column,
    );
    const [, line = ""] = formatTable(shrinking, long, { colors: plain, width: 58 }).split("\n");
    expect(line).toBe(`1   ${"N".repeat(40)}  ${"n".repeat(11)}…`);
  });

  it("omits an optional column without any text", () => {
    const noteless = rows.map((row) => ({ ...row, note: "" }));
    expect(formatTable(columns, noteless, { colors: plain })).toMatch(/^ID {2}NAME\n/);
  });

  it("escapes control characters", () => {
    const unsafe = [{ id: "\u001b[2J", name: "a\u202eb\r\n", note: "\u009b31m" }];
    const text = formatTable(columns, unsafe, { colors: plain });
    expect(text).toContain("\\u{1b}[2J  a\\u{202e}b\\u{d}\\u{a}  \\u{9b}31m");
    expect(formatDetails([["name", "\u0007"]], { colors: plain })).toBe("name  \\u{7}\n");
  });
});

describe("formatDetails", () => {
  it("prints one pair per line, omits empty values and wraps long ones", () => {
    const pairs = [["name", "Web shop"] as const, ["none", undefined] as const];
    expect(formatDetails([...pairs, ["may", "a:b c:d e:f"]], { colors: plain, width: 14 })).toBe(
      "name  Web shop\nmay   a:b c:d\n      e:f\n",
    );
  });

  it("prints the id of an application beside its name, or below it", () => {
    const details = [["by", "Web shop", "0198"] as const];
    expect(formatDetails(details, { colors: plain, width: 18 })).toBe("by  Web shop  0198\n");
    expect(formatDetails(details, { colors: plain, width: 17 })).toBe("by  Web shop\n    0198\n");
  });

  it("prints the lines of a value below each other", () => {
    expect(formatDetails([["note", "one\r\ntwo\nthree"]], { colors: plain })).toBe(
      "note  one\n      two\n      three\n",
    );
  });
});

describe("text width", () => {
  it("counts terminal columns", () => {
    expect(["abc", "日本", "한", "é", "e\u0301", "👍", "…"].map(textWidth)).toEqual([
      3, 4, 2, 1, 1, 2, 1,
    ]);
  });

  it.each([
    ["サーバー・ユーザー", 18],
    ["㈱", 2],
    ["ﾊﾝｶｸ", 4],
    ["ﾊﾞ", 2],
    ["ㄅㄆ", 4],
    ["ꀀ", 2],
    ["한글", 4],
    ["👨‍👩‍👧", 2],
    ["1️⃣", 2],
    ["🇯🇵", 2],
  ])("counts the columns of %s", (text, width) => {
    expect(textWidth(text)).toBe(width);
  });

  it("keeps the joiners of emoji and Arabic words, and no others", () => {
    const name = "👨‍👩‍👧 می‌خواهم";
    expect(formatDetails([["name", name]], { colors: plain })).toBe(`name  ${name}\n`);
    expect(formatDetails([["name", "ad\u200cm\u200din\u200d👧"]], { colors: plain })).toBe(
      "name  ad\\u{200c}m\\u{200d}in\\u{200d}👧\n",
    );
  });

  it("truncates and wraps between characters", () => {
    expect(truncateText("日本語", 6)).toBe("日本語");
    expect(truncateText("日本語", 5)).toBe("日本…");
    expect(truncateText("日本語", 4)).toBe("日…");
    expect(truncateText("abc", 0)).toBe("");
    expect(wrapText("one twotwo three", 6)).toEqual(["one", "twotwo", "three"]);
  });
});

describe("colorsFor", () => {
  it.each([
    ["colors a terminal", { isTTY: true }, undefined, true],
    ["does not color a pipe", { isTTY: false }, undefined, false],
    ["does not color a terminal if disabled", { isTTY: true }, false, false],
    ["colors a pipe if forced", { isTTY: false }, true, true],
  ])("%s", (_, stream, colors, expected) => {
    expect(colorsFor(stream, { colors }).good("yes").includes("\u001b[32m")).toBe(expected);
  });
});

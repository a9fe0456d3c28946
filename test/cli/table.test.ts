import { describe, expect, it } from "@jest/globals";
import {
  type Column,
  createColours,
  cutText,
  detailsText,
  tableText,
  textWidth,
  wrapText,
} from "../../src/cli/table.js";

interface Row {
  readonly id: string;
  readonly name: string;
  readonly note: string;
}

const plain = createColours({ isTTY: false }, { colours: undefined });
const columns: readonly Column<Row>[] = [
  { title: "ID", text: ({ id }) => id },
  { title: "NAME", text: ({ name }) => name, shrinks: true },
  { title: "NOTE", text: ({ note }) => note, isExtra: true },
];
const rows = [
  { id: "1", name: "Web shop", note: "old" },
  { id: "22", name: "店 of the East", note: "new" },
];

describe("a table", () => {
  it("stands in columns, whatever the width of its characters", () => {
    expect(tableText(columns, rows, { colours: plain })).toBe(
      "ID  NAME            NOTE\n1   Web shop        old\n22  店 of the East  new\n",
    );
  });

  it("cuts what may be cut, and leaves out what it has no room for", () => {
    expect(tableText(columns, rows, { colours: plain, width: 22 })).toBe(
      "ID  NAME          NOTE\n1   Web shop      old\n22  店 of the E…  new\n",
    );
    expect(tableText(columns, rows, { colours: plain, width: 17 })).toBe(
      "ID  NAME\n1   Web shop\n22  店 of the Ea…\n",
    );
    const narrow = tableText(columns, rows, { colours: plain, width: 9 });
    expect(narrow.split("\n").map(textWidth)).toEqual([8, 9, 9, 0]);
  });

  it("shows no character that a terminal would obey", () => {
    const evil = [{ id: "\u001b[2J", name: "a\u202eb\r\n", note: "\u009b31m" }];
    const text = tableText(columns, evil, { colours: plain });
    expect(text).toContain("\\u{1b}[2J  a\\u{202e}b\\u{d}\\u{a}  \\u{9b}31m");
    expect(detailsText([["name", "\u0007"]], { colours: plain })).toBe("name  \\u{7}\n");
  });
});

describe("facts", () => {
  it("stand below each other, those without a value left out, long ones in several lines", () => {
    const facts = [["name", "Web shop"] as const, ["none", undefined] as const];
    expect(detailsText([...facts, ["may", "a:b c:d e:f"]], { colours: plain, width: 14 })).toBe(
      "name  Web shop\nmay   a:b c:d\n      e:f\n",
    );
  });
});

describe("a text", () => {
  it("takes as many cells as a terminal gives it", () => {
    expect(["abc", "日本", "한", "é", "e\u0301", "👍", "…"].map(textWidth)).toEqual([
      3, 4, 2, 1, 1, 2, 1,
    ]);
  });

  it("is cut between characters, and never in one", () => {
    expect(cutText("日本語", 6)).toBe("日本語");
    expect(cutText("日本語", 5)).toBe("日本…");
    expect(cutText("日本語", 4)).toBe("日…");
    expect(cutText("abc", 0)).toBe("");
    expect(wrapText("one twotwo three", 6)).toEqual(["one", "twotwo", "three"]);
  });
});

describe("colours", () => {
  it.each([
    ["there on a terminal", { isTTY: true }, undefined, true],
    ["not there elsewhere", { isTTY: false }, undefined, false],
    ["not there where they are not wanted", { isTTY: true }, false, false],
    ["there where they are asked for", { isTTY: false }, true, true],
  ])("are %s", (_, stream, colours, isThere) => {
    expect(createColours(stream, { colours }).good("yes").includes("\u001b[32m")).toBe(isThere);
  });
});

import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { type SplitLine, splitLines } from "../../src/transfer/split-lines.js";

async function split(chunks: readonly Buffer[], longest?: number): Promise<SplitLine[]> {
  async function* read() {
    yield* chunks;
  }
  const lines: SplitLine[] = [];
  for await (const line of splitLines(read(), longest)) {
    lines.push(line);
  }
  return lines;
}

/** Cuts a text into parts of these lengths, over and over. */
function cut(text: Buffer, lengths: readonly number[]): Buffer[] {
  const parts: Buffer[] = [];
  for (let start = 0, turn = 0; start < text.length; turn++) {
    const length = lengths[turn % lengths.length] ?? 1;
    parts.push(text.subarray(start, start + length));
    start += length;
  }
  return parts;
}

describe("a file that is split into lines", () => {
  it("has the same lines, however it is cut into parts", () =>
    fc.assert(
      fc.asyncProperty(
        fc.string({ unit: fc.constantFrom("a", "é", "\n"), maxLength: 60 }),
        fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }),
        async (text, lengths) => {
          const bytes = Buffer.from(text);
          const lines = await split(cut(bytes, lengths));
          const expected = text.split("\n");
          const rest = expected.pop() ?? "";
          expect(lines.map((line) => line.bytes.toString())).toEqual(
            rest === "" ? expected : [...expected, rest],
          );
          expect(lines.map(({ number }) => number)).toEqual(lines.map((_, at) => at + 1));
          expect(lines.filter(({ isWhole }) => isWhole)).toHaveLength(expected.length);
          expect(lines.at(-1)?.end ?? 0).toBe(bytes.length);
          for (const { end, isWhole } of lines) {
            expect(isWhole ? bytes[end - 1] : end).toBe(isWhole ? 0x0a : bytes.length);
          }
        },
      ),
    ));

  it("keeps only the beginning of a line that is too long, and goes on after it", async () => {
    const text = Buffer.from(`${"a".repeat(50)}\nb\n`);
    const [long, next] = await split(cut(text, [7]), 20);
    expect(long).toMatchObject({ number: 1, isTooLong: true, end: 51 });
    expect(long?.bytes.length).toBeLessThanOrEqual(20);
    expect(next).toMatchObject({ number: 2, isTooLong: false, end: 53 });
    expect(next?.bytes.toString()).toBe("b");
  });
});

import { PassThrough } from "node:stream";
import { finished } from "node:stream/promises";
import { expect, it } from "@jest/globals";
import fc from "fast-check";
import { forwardLines } from "../src/workers/forward-lines.js";

/** What is passed on of bytes that arrive in these parts, each piece by itself. */
async function forward(parts: readonly Buffer[]): Promise<string[]> {
  const from = new PassThrough();
  const passedOn: string[] = [];
  forwardLines(from, { write: (lines) => passedOn.push(lines), flush() {} });
  for (const part of parts) {
    from.write(part);
    await new Promise(setImmediate);
  }
  from.end();
  await finished(from);
  return passedOn;
}

it("passes on whole lines only, whatever parts they arrive in", async () => {
  const line = fc.string({ unit: "grapheme", maxLength: 20 }).map((text) => JSON.stringify(text));
  const lines = fc.array(line, { minLength: 1, maxLength: 10 });
  const sizes = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 });
  await fc.assert(
    fc.asyncProperty(lines, sizes, async (lines, sizes) => {
      const bytes = Buffer.from(`${lines.join("\n")}\n`);
      const parts: Buffer[] = [];
      for (let at = 0; at < bytes.length; ) {
        const size = sizes[parts.length % sizes.length] as number;
        parts.push(bytes.subarray(at, at + size));
        at += size;
      }
      const passedOn = await forward(parts);
      expect(passedOn.every((piece) => piece.endsWith("\n"))).toBe(true);
      expect(passedOn.join("")).toBe(bytes.toString());
    }),
    { numRuns: 50 },
  );
});

it("ends the last line of a worker that died in the middle of it", async () => {
  expect(await forward([Buffer.from("one\ntw")])).toEqual(["one\n", "tw\n"]);
});

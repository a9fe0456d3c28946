import { PassThrough } from "node:stream";
import { finished } from "node:stream/promises";
import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { forwardLines, restartDelay } from "../../src/cluster/supervisor.js";

describe("forwardLines", () => {
  /** The forwarded pieces for bytes that arrive in these chunks. */
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

  it("forwards whole lines for any chunking", async () => {
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

  it("terminates the incomplete last line", async () => {
    expect(await forward([Buffer.from("one\ntw")])).toEqual(["one\n", "tw\n"]);
  });
});

describe("restartDelay", () => {
  it("backs off exponentially until a worker runs long enough", () => {
    const waits = [0];
    for (let round = 0; round < 10; round++) {
      waits.push(restartDelay(5, waits.at(-1)));
    }
    expect(waits).toEqual([0, 100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000, 10_000]);
    expect(restartDelay(30_000, 10_000)).toBe(100);
  });
});

import { PassThrough } from "node:stream";
import { finished } from "node:stream/promises";
import { describe, expect, it } from "@jest/globals";
import { buildSync } from "esbuild";
import fc from "fast-check";
import { forwardLines, restartDelay } from "../../src/cluster/supervisor.js";

describe("the supervisor", () => {
  it("does not load the server or a store", () => {
    const { metafile } = buildSync({
      entryPoints: ["src/cluster/supervisor.ts"],
      bundle: true,
      format: "esm",
      packages: "external",
      metafile: true,
      write: false,
    });
    const loaded = Object.keys(metafile.inputs);
    expect(loaded).toContain("src/cluster/supervisor.ts");
    expect(loaded.filter((path) => /^src\/(server|run-service|store\/)/.test(path))).toEqual([]);
  });
});

describe("forwardLines", () => {
  /** Forwards bytes in these chunks, and returns what was written. */
  async function forward(chunks: readonly Buffer[]): Promise<string[]> {
    const from = new PassThrough();
    const forwarded: string[] = [];
    forwardLines(from, { write: (lines) => forwarded.push(lines), flush() {} });
    for (const chunk of chunks) {
      from.write(chunk);
      await new Promise(setImmediate);
    }
    from.end();
    await finished(from);
    return forwarded;
  }

  it("forwards whole lines for any chunking", async () => {
    const line = fc.string({ unit: "grapheme", maxLength: 20 }).map((text) => JSON.stringify(text));
    const lines = fc.array(line, { minLength: 1, maxLength: 10 });
    const sizes = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 });
    await fc.assert(
      fc.asyncProperty(lines, sizes, async (lines, sizes) => {
        const bytes = Buffer.from(`${lines.join("\n")}\n`);
        const chunks: Buffer[] = [];
        for (let at = 0; at < bytes.length; ) {
          const size = sizes[chunks.length % sizes.length] as number;
          chunks.push(bytes.subarray(at, at + size));
          at += size;
        }
        const forwarded = await forward(chunks);
        expect(forwarded.every((piece) => piece.endsWith("\n"))).toBe(true);
        expect(forwarded.join("")).toBe(bytes.toString());
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
    const delays = [0];
    for (let attempt = 0; attempt < 10; attempt++) {
      delays.push(restartDelay(5, delays.at(-1)));
    }
    expect(delays).toEqual([0, 100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000, 10_000]);
    expect(restartDelay(30_000, 10_000)).toBe(100);
  });
});

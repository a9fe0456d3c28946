import { describe, expect, it } from "@jest/globals";
import { progressBar, progressLine } from "../../src/transfer/progress.js";

const megabyte = 1024 * 1024;

describe("how far an import or export is", () => {
  it("is told in records, bytes and how many a second", () => {
    const standing = { records: 12_345, bytes: 7.5 * megabyte, elapsed: 5_000 };
    expect(progressLine("exported", standing)).toBe("exported 12,345 records, 7.5 MB, 2,469/s");
    expect(progressBar(standing)).toBe("");
  });

  it("is told in parts of the whole, with the time that is left, where that is known", () => {
    const standing = { records: 500, bytes: megabyte, ofBytes: 4 * megabyte, elapsed: 30_000 };
    expect(progressLine("imported", standing)).toBe(
      "25% imported 500 records, 1.0 MB, 17/s, 1:30 left",
    );
    expect(progressBar(standing)).toBe("[#####               ] ");
    const long = { ...standing, elapsed: 3_600_000 };
    expect(progressLine("imported", long)).toContain("3:00:00 left");
  });

  it("is told before anything is done, and when all is", () => {
    const nothing = { records: 0, bytes: 0, ofBytes: megabyte, elapsed: 0 };
    expect(progressLine("imported", nothing)).toBe("0% imported 0 records, 0 kB, 0/s");
    const all = { records: 1, bytes: 2 * megabyte, ofBytes: megabyte, elapsed: 1_000 };
    expect(progressLine("imported", all)).toContain("100% imported");
    expect(progressBar(all)).toBe("[####################] ");
  });
});

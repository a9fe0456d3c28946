import { describe, expect, it } from "@jest/globals";
import type { Sample } from "../bench/soak/gauges.js";
import { createRecord, type Record } from "../bench/soak/record.js";
import { faultsOf, report } from "../bench/soak/report.js";

interface Rises {
  readonly memory?: number;
  readonly files?: number;
}

/** What the gauges show where memory and open files rise by so much in a minute, after a steep start. */
function samplesOf({ memory = 0, files = 0 }: Rises): Sample[] {
  return Array.from({ length: 100 }, (_, minutes) => {
    const start = Math.min(minutes, 20) * 10;
    return { minutes, memory: 100 + start + minutes * memory, files: 50 + start + minutes * files };
  });
}

async function recordOf(...journeys: ((record: Record) => Promise<unknown>)[]): Promise<Record> {
  const record = createRecord();
  for (const journey of journeys) {
    await record.attempt(() => journey(record));
  }
  return record;
}

const read = ({ time }: Record) => time("read", async () => "well");

describe("a soak", () => {
  it("holds where nothing went wrong and all is flat once it is warm", async () => {
    const result = { minutes: 30, rate: 1, samples: samplesOf({}), record: await recordOf(read) };
    expect(faultsOf(result)).toEqual([]);
    expect(report(result)).toMatch(/^open files .* flat/m);
  });

  it.each([
    ["memory", 30, samplesOf({ memory: 0.6 }), "memory in MiB: rises by 0.60 a minute"],
    ["memory in a short time", 6, samplesOf({ memory: 3.1 }), "memory in MiB: rises by 3.10"],
    ["open files", 30, samplesOf({ files: 0.6 }), "open files: rises by 0.60"],
  ])("does not hold with ever more %s", async (_what, minutes, samples, fault) => {
    const result = { minutes, rate: 1, samples, record: await recordOf(read) };
    expect(faultsOf(result)).toEqual([expect.stringContaining(fault)]);
    expect(report(result)).toContain("NOT FLAT");
  });

  it.each([
    ["nothing", []],
    ["a single moment", samplesOf({}).slice(0, 1)],
    [
      "no figures",
      [1, 2, 3].map((minutes) => ({ minutes, memory: Number.NaN, files: Number.NaN })),
    ],
  ])("does not hold on the sight of %s", async (_what, samples) => {
    const record = await recordOf(read);
    expect(faultsOf({ minutes: 30, rate: 1, samples, record })).toHaveLength(2);
  });

  it("does not hold where a request fails, or anything between two requests", async () => {
    const record = await recordOf(
      read,
      ({ time }) => time("create", () => Promise.reject(new Error("answered 503"))),
      () => Promise.reject(new Error("another's key")),
    );
    expect(record.errors.count).toBe(2);
    const [fault] = faultsOf({ minutes: 30, rate: 1, samples: samplesOf({}), record });
    expect(fault).toContain("2 journeys went wrong");
    expect(fault).toContain("create: Error: answered 503");
    expect(fault).toContain("another's key");
  });

  it("does not hold where no request was answered", async () => {
    const record = await recordOf();
    const result = { minutes: 30, rate: 0, samples: samplesOf({}), record };
    expect(faultsOf(result)).toEqual(["no request was answered"]);
  });
});

import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { type Goal, goalsToText, judge } from "../bench/goals.js";
import { createAnswerReader } from "../bench/load/answer-reader.js";
import { createFrameReader, grpcFrame } from "../bench/load/grpc.js";
import { memoryIn } from "../bench/processes.js";
import type { Sample } from "../bench/soak/gauges.js";
import { createRecord, type Record } from "../bench/soak/record.js";
import { faultsOf, report } from "../bench/soak/report.js";
import { percentile, spreadOf } from "../bench/statistics.js";
import { drawPlot } from "../bench/svg/plot.js";
import { linearScale, logScale } from "../bench/svg/scale.js";

describe("goals", () => {
  function goalOf(limit: Goal["limit"], ...figures: number[]): Goal {
    return { path: "GET /", promise: "as said", limit, figures };
  }

  describe("the goals of the benchmark", () => {
    it.each([
      ["met", [1.4, 1.5, 1.8]],
      ["met", [1.5]],
      ["near", [1.4, 1.6, 1.7]],
      ["missed", [1.51, 1.6, 1.7]],
      ["missed", [Number.POSITIVE_INFINITY]],
      ["unknown", []],
      ["unknown", [Number.NaN, Number.NaN]],
    ])("are %s where at most 1.5 is asked for and %p was seen", (verdict, figures) => {
      expect(judge(goalOf({ atMost: 1.5 }, ...figures))).toBe(verdict);
    });

    it.each([
      ["met", [2, 3, 9]],
      ["near", [1, 2.9, 3]],
      ["missed", [1, 2, 2.9]],
      ["missed", [0]],
      ["unknown", []],
    ])("are %s where at least 3 is asked for and %p was seen", (verdict, figures) => {
      expect(judge(goalOf({ atLeast: 3 }, ...figures))).toBe(verdict);
    });

    it("are shown with the median, the range and the verdict", () => {
      const goals = [goalOf({ atMost: 1.5 }, 1.4, 1.6, 1.7), goalOf({ atMost: 1.5 })];
      const lines = goalsToText(goals).split("\n");
      expect(lines).toContainEqual(
        expect.stringMatching(/^GET \/ +as said +1\.60 \(1\.40–1\.70\) +✗, within the spread$/),
      );
      expect(lines).toContainEqual(expect.stringMatching(/^GET \/ +as said +– +not measured *$/));
    });
  });

  describe("the statistics of the benchmark", () => {
    it("take the middle of an odd number of figures, and between the two middle ones of an even", () => {
      expect(spreadOf([3, 1, 10])).toEqual({ median: 3, low: 1, high: 10 });
      expect(spreadOf([4, 1, 2, 9])).toEqual({ median: 3, low: 1, high: 9 });
    });

    it("take the figure that so many percent do not exceed", () => {
      const figures = Array.from({ length: 100 }, (_, at) => 100 - at);
      expect([0, 50, 99, 100].map((percent) => percentile(figures, percent))).toEqual([
        1, 50, 99, 100,
      ]);
    });
  });
});

describe("load", () => {
  const withLength = "HTTP/1.1 201 Created\r\nContent-Length: 5\r\n\r\nhello";
  const withoutBody = "HTTP/1.1 204 No Content\r\ndate: now\r\n\r\n";
  const inChunks = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";

  /** A text as bytes, cut in two at a place. */
  function cut(text: string, place: number): Buffer[] {
    const bytes = Buffer.from(text);
    return [bytes.subarray(0, place), bytes.subarray(place)].filter(({ length }) => length > 0);
  }

  describe("the load drivers of the benchmark", () => {
    it.each([
      ["with a length", withLength, 201, "hello"],
      ["without a body", withoutBody, 204, ""],
      ["in chunks", inChunks, 200, "5\r\nhello\r\n0\r\n\r\n"],
    ])("read an answer %s, wherever it is cut", (_name, text, status, body) => {
      for (let place = 1; place <= text.length; place++) {
        const reader = createAnswerReader();
        const answers = cut(text, place).map((part) => reader.add(part));
        expect(answers.slice(0, -1)).toEqual(answers.slice(0, -1).map(() => undefined));
        expect(answers.at(-1)).toEqual({ status, body: Buffer.from(body) });
      }
    });

    it("refuse an answer whose end cannot be seen", () => {
      const answer = Buffer.from("HTTP/1.1 200 OK\r\n\r\nhello");
      expect(() => createAnswerReader().add(answer)).toThrow("an answer without a length");
    });

    it("read the messages of a stream, however they are cut", () => {
      const messages = fc.array(fc.uint8Array({ maxLength: 20 }), { minLength: 1, maxLength: 5 });
      fc.assert(
        fc.property(messages, fc.integer({ min: 1, max: 9 }), (sent, size) => {
          const bytes = Buffer.concat(sent.map(grpcFrame));
          const received: Buffer[] = [];
          const read = createFrameReader((message) => received.push(Buffer.from(message)));
          for (let at = 0; at < bytes.length; at += size) {
            read(bytes.subarray(at, at + size));
          }
          expect(received).toEqual(sent.map((message) => Buffer.from(message)));
        }),
      );
    });
  });

  describe("the memory that the benchmark sees", () => {
    const smaps = [
      "00400000-00500000 r-xp 00000000 fe:00 1 /usr/bin/node",
      "Size:               4096 kB",
      "Rss:                2048 kB",
      "7f0000000000-7f1000000000 r--s 00000000 fe:00 2 /tmp/store/data.mdb",
      "Rss:               10240 kB",
      "7f2000000000-7f2000100000 rw-p 00000000 00:00 0",
      "Rss:                1024 kB",
    ].join("\n");

    it("is told with and without the data that is mapped into a process", () => {
      expect(memoryIn(smaps, "/tmp/store")).toEqual({ whole: 13, own: 3 });
      expect(memoryIn(smaps, undefined)).toEqual({ whole: 13, own: 13 });
    });
  });
});

describe("soak", () => {
  interface Rises {
    readonly memory?: number;
    readonly files?: number;
  }

  /** What the gauges show where memory and open files rise by so much in a minute, after a steep start. */
  function samplesOf({ memory = 0, files = 0 }: Rises): Sample[] {
    return Array.from({ length: 100 }, (_, minutes) => {
      const start = Math.min(minutes, 20) * 10;
      return {
        minutes,
        memory: 100 + start + minutes * memory,
        files: 50 + start + minutes * files,
      };
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
  const besideInvalid = { refused: 64, latencies: [2, 3_000] };

  describe("a soak", () => {
    it("holds where nothing went wrong and all is flat once it is warm", async () => {
      const result = {
        minutes: 30,
        rate: 1,
        samples: samplesOf({}),
        record: await recordOf(read),
        besideInvalid,
      };
      expect(faultsOf(result)).toEqual([]);
      expect(report(result)).toMatch(/^open files .* flat/m);
    });

    it.each([
      ["memory", 30, samplesOf({ memory: 0.6 }), "memory in MiB: rises by 0.60 a minute"],
      ["memory in a short time", 6, samplesOf({ memory: 3.1 }), "memory in MiB: rises by 3.10"],
      ["open files", 30, samplesOf({ files: 0.6 }), "open files: rises by 0.60"],
    ])("does not hold with ever more %s", async (_what, minutes, samples, fault) => {
      const result = { minutes, rate: 1, samples, record: await recordOf(read), besideInvalid };
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
      expect(faultsOf({ minutes: 30, rate: 1, samples, record, besideInvalid })).toHaveLength(2);
    });

    it("does not hold where a request fails, or anything between two requests", async () => {
      const record = await recordOf(
        read,
        ({ time }) => time("create", () => Promise.reject(new Error("answered 503"))),
        () => Promise.reject(new Error("another's key")),
      );
      expect(record.errors.count).toBe(2);
      const [fault] = faultsOf({
        minutes: 30,
        rate: 1,
        samples: samplesOf({}),
        record,
        besideInvalid,
      });
      expect(fault).toContain("2 journeys went wrong");
      expect(fault).toContain("create: Error: answered 503");
      expect(fault).toContain("another's key");
    });

    it.each([
      ["waits for long", [2, 3_001]],
      ["is not served", []],
    ])(
      "does not hold where a caller %s beside requests that are not valid",
      async (_, latencies) => {
        const record = await recordOf(read);
        const beside = { besideInvalid: { refused: 64, latencies } };
        const result = { minutes: 30, rate: 1, samples: samplesOf({}), record, ...beside };
        expect(faultsOf(result)).toEqual([expect.stringContaining("beside 64 large requests")]);
        expect(report(result)).toContain("beside 64 large requests");
      },
    );

    it("does not hold where no request was answered", async () => {
      const record = await recordOf();
      const result = { minutes: 30, rate: 0, samples: samplesOf({}), record, besideInvalid };
      expect(faultsOf(result)).toEqual(["no request was answered"]);
    });
  });
});

describe("charts", () => {
  const figures = fc.array(fc.double({ min: 1e-3, max: 1e7, noNaN: true }), { minLength: 1 });

  describe("the scales of the benchmark's pictures", () => {
    it.each([
      ["linear", linearScale],
      ["logarithmic", logScale],
    ])("have a place for every figure, and a few ticks within, if %s", (_name, scaleOf) => {
      fc.assert(
        fc.property(figures, (all) => {
          const { place, ticks } = scaleOf(all);
          for (const figure of [...all, ...ticks]) {
            expect(place(figure)).toBeGreaterThanOrEqual(-1e-9);
            expect(place(figure)).toBeLessThanOrEqual(1 + 1e-9);
          }
          expect(ticks.length).toBeGreaterThanOrEqual(1);
          expect(ticks.length).toBeLessThanOrEqual(12);
        }),
      );
    });

    it("go in round steps", () => {
      expect(linearScale([180, 315]).ticks).toEqual([0, 50, 100, 150, 200, 250, 300, 350]);
      expect(logScale([1_000, 1_000_000]).ticks).toEqual([1_000, 10_000, 100_000, 1_000_000]);
      expect(logScale([0.3, 4]).ticks).toEqual([0.2, 0.5, 1, 2, 5]);
    });
  });

  describe("the pictures of the benchmark", () => {
    const picture = drawPlot({
      title: "This & that",
      x: { label: "requests" },
      y: { label: "µs < ms" },
      series: [{ name: "p99", values: "above", points: [{ x: 1, y: 1234.5 }] }],
    });

    it("name the axes, the series and the values", () => {
      for (const words of ["requests", "µs &lt; ms", "p99", "1,230", "This &amp; that"]) {
        expect(picture).toContain(`>${words}</t`);
      }
    });

    it("hold no figure that is none", () => {
      expect(picture).not.toMatch(/NaN|undefined|Infinity/);
    });
  });
});

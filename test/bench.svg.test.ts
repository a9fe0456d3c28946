import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { drawPlot } from "../bench/svg/plot.js";
import { linearScale, logScale } from "../bench/svg/scale.js";

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

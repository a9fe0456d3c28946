/** Places figures along an axis. */
export interface Scale {
  /** From 0 at the least figure to 1 at the greatest. */
  place(figure: number): number;
  readonly ticks: readonly number[];
}

const steps = [1, 2, 5];
const mostTicks = 7;

/** From zero to the first round figure that none exceeds. */
export function linearScale(figures: readonly number[]): Scale {
  const greatest = Math.max(...figures);
  const size = 10 ** Math.floor(Math.log10(greatest / mostTicks));
  const step = size * ([...steps, 10].find((by) => size * by * mostTicks >= greatest) ?? 10);
  const top = Math.ceil(greatest / step);
  return {
    place: (figure) => figure / (top * step),
    ticks: Array.from({ length: top + 1 }, (_, at) => at * step),
  };
}

/** From a round figure that none falls below to one that none exceeds, each tenfold as far as the one before. */
export function logScale(figures: readonly number[]): Scale {
  const least = roundDown(Math.min(...figures));
  const greatest = roundUp(Math.max(...figures));
  const range = Math.log10(greatest / least) || 1;
  return {
    place: (figure) => Math.log10(figure / least) / range,
    ticks: roundFigures(least, greatest, range > 2 ? [1] : steps),
  };
}

function roundFigures(least: number, greatest: number, within: readonly number[]): number[] {
  const ticks: number[] = [];
  for (let power = Math.floor(Math.log10(least)); 10 ** power <= greatest; power++) {
    ticks.push(...within.map((step) => step * 10 ** power));
  }
  return ticks.filter((tick) => tick >= least && tick <= greatest);
}

function roundDown(figure: number): number {
  const power = 10 ** Math.floor(Math.log10(figure));
  return power * (steps.findLast((step) => step * power <= figure) ?? 1);
}

function roundUp(figure: number): number {
  const power = 10 ** Math.floor(Math.log10(figure));
  return power * ([...steps, 10].find((step) => step * power >= figure) ?? 10);
}

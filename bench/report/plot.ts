interface Plot {
  readonly title: string;
  readonly x: Axis;
  readonly y: Axis;
  readonly series: readonly Series[];
}

interface Axis {
  readonly label: string;
  readonly isLogarithmic?: boolean;
}

export interface Series {
  readonly name: string;
  readonly points: readonly { readonly x: number; readonly y: number }[];
  /** On which side of its points their values stand. */
  readonly values: "above" | "below";
}

const width = 720;
const height = 400;
const area = { left: 70, right: 680, top: 70, bottom: 340 };
/** Keeps the values of the first and the last point off the edges. */
const inset = 30;
const legendSpace = 190;
/** Told apart by people who do not see all colours. */
const colours = ["#0072b2", "#d55e00", "#007a5e", "#8f4d7c"];
const ink = "#24292f";
const faint = "#d0d7de";

/** Draws lines through points as an SVG picture. It brings its own ground, so that it can stand on any. */
export function drawPlot({ title, x, y, series }: Plot): string {
  const points = series.flatMap((one) => one.points);
  const xScale = scaleFor(
    x,
    points.map((point) => point.x),
  );
  const yScale = scaleFor(
    y,
    points.map((point) => point.y),
  );
  const toX = (figure: number) =>
    area.left + inset + xScale.place(figure) * (area.right - area.left - 2 * inset);
  // What is least on a logarithmic axis is not nothing, and its value needs a place below it.
  const bottom = area.bottom - (y.isLogarithmic ? inset : 0);
  const toY = (figure: number) => bottom - yScale.place(figure) * (bottom - area.top);

  const parts = [
    `<rect x="0.5" y="0.5" width="${width - 1}" height="${height - 1}" rx="8" fill="#ffffff" stroke="${faint}"/>`,
    text(area.left, 28, title, 'font-size="15" font-weight="600"'),
    `<path d="M${area.left} ${area.bottom}H${area.right}" stroke="${ink}"/>`,
    ...xScale.ticks.flatMap((tick) => xTick(toX(tick), tick)),
    ...yScale.ticks.flatMap((tick) => yTick(toY(tick), tick)),
    text((area.left + area.right) / 2, height - 16, x.label, 'text-anchor="middle"'),
    text(0, 0, y.label, `text-anchor="middle" transform="translate(20 ${middle()}) rotate(-90)"`),
    ...series.flatMap((one, at) => line(one, colours[at % colours.length] as string, toX, toY)),
    ...legend(series),
  ];
  const head = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" font-family="system-ui, sans-serif" font-size="12" fill="${ink}">`;
  return `${[head, `<title>${escaped(title)}</title>`, ...parts, "</svg>"].join("\n")}\n`;
}

function scaleFor({ isLogarithmic }: Axis, figures: readonly number[]): Scale {
  return isLogarithmic ? logScale(figures) : linearScale(figures);
}

function middle(): number {
  return (area.top + area.bottom) / 2;
}

function xTick(x: number, tick: number): string[] {
  const at = round(x);
  return [
    `<path d="M${at} ${area.bottom}v5" stroke="${ink}"/>`,
    text(at, area.bottom + 20, short(tick), 'text-anchor="middle"'),
  ];
}

function yTick(y: number, tick: number): string[] {
  const at = round(y);
  return [
    `<path d="M${area.left} ${at}H${area.right}" stroke="${faint}"/>`,
    text(area.left - 8, at + 4, short(tick), 'text-anchor="end"'),
  ];
}

type Place = (figure: number) => number;

function line({ points, values }: Series, colour: string, toX: Place, toY: Place): string[] {
  const path = points.map(({ x, y }) => `${round(toX(x))} ${round(toY(y))}`).join("L");
  const shift = values === "above" ? -9 : 18;
  return [
    `<path d="M${path}" fill="none" stroke="${colour}" stroke-width="2"/>`,
    ...points.flatMap(({ x, y }) => [
      `<circle cx="${round(toX(x))}" cy="${round(toY(y))}" r="3.5" fill="${colour}"/>`,
      text(
        round(toX(x)),
        round(toY(y) + shift),
        short(y),
        `text-anchor="middle" font-size="11" fill="${colour}"`,
      ),
    ]),
  ];
}

function legend(series: readonly Series[]): string[] {
  return series.flatMap(({ name }, at) => {
    const x = round(area.left + at * legendSpace);
    const colour = colours[at % colours.length] as string;
    return [`<circle cx="${x + 4}" cy="48" r="4" fill="${colour}"/>`, text(x + 14, 52, name, "")];
  });
}

function text(x: number, y: number, words: string, attributes: string): string {
  return `<text x="${x}" y="${y}" ${attributes}>${escaped(words)}</text>`;
}

function short(figure: number): string {
  return figure.toLocaleString("en", { maximumSignificantDigits: 3 });
}

function round(figure: number): number {
  return Math.round(figure * 10) / 10;
}

function escaped(words: string): string {
  return words.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}

/** Places figures along an axis. */
interface Scale {
  /** From 0 at the least figure to 1 at the greatest. */
  place(figure: number): number;
  readonly ticks: readonly number[];
}

const steps = [1, 2, 5];
const mostTicks = 7;

/** From zero to the first round figure that none exceeds. */
function linearScale(figures: readonly number[]): Scale {
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
function logScale(figures: readonly number[]): Scale {
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

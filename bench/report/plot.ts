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
  /** Where the labels of its points are. */
  readonly labels: "above" | "below";
}

const width = 720;
const height = 400;
const area = { left: 70, right: 680, top: 70, bottom: 340 };
/** Keeps the labels of the first and last points away from the edges. */
const inset = 30;
const legendSpace = 190;
/** A palette for color-blind readers. */
const colors = ["#0072b2", "#d55e00", "#007a5e", "#8f4d7c"];
/** Inverts the lightness and keeps the hues. */
const darkStyle =
  "<style>@media (prefers-color-scheme: dark) { svg { filter: invert(0.92) hue-rotate(180deg) } }</style>";
const ink = "#24292f";
const faint = "#d0d7de";

/** Draws a line chart as SVG, with a background so that it works on light and dark pages. */
export function drawPlot({ title, x, y, series }: Plot): string {
  const points = series.flatMap(({ points }) => points);
  const xScale = scaleFor(
    x,
    points.map((point) => point.x),
  );
  const yScale = scaleFor(
    y,
    points.map((point) => point.y),
  );
  const toX = (value: number) =>
    area.left + inset + xScale.toFraction(value) * (area.right - area.left - 2 * inset);
  // The lowest point of a logarithmic axis needs space for its label.
  const bottom = area.bottom - (y.isLogarithmic ? inset : 0);
  const toY = (value: number) => bottom - yScale.toFraction(value) * (bottom - area.top);

  const parts = [
    `<rect x="0.5" y="0.5" width="${width - 1}" height="${height - 1}" rx="8" fill="#ffffff" stroke="${faint}"/>`,
    text(area.left, 28, title, 'font-size="15" font-weight="600"'),
    `<path d="M${area.left} ${area.bottom}H${area.right}" stroke="${ink}"/>`,
    ...xScale.ticks.flatMap((tick) => drawXTick(toX(tick), tick)),
    ...yScale.ticks.flatMap((tick) => drawYTick(toY(tick), tick)),
    text((area.left + area.right) / 2, height - 16, x.label, 'text-anchor="middle"'),
    text(
      0,
      0,
      y.label,
      `text-anchor="middle" transform="translate(20 ${getMiddleY()}) rotate(-90)"`,
    ),
    ...series.flatMap((line, index) =>
      drawLine(line, colors[index % colors.length] as string, toX, toY),
    ),
    ...drawLegend(series),
  ];
  const head = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" font-family="system-ui, sans-serif" font-size="12" fill="${ink}">`;
  return `${[head, `<title>${escapeXml(title)}</title>`, darkStyle, ...parts, "</svg>"].join("\n")}\n`;
}

function scaleFor({ isLogarithmic }: Axis, values: readonly number[]): Scale {
  return isLogarithmic ? logScale(values) : linearScale(values);
}

function getMiddleY(): number {
  return (area.top + area.bottom) / 2;
}

function drawXTick(x: number, tick: number): string[] {
  const at = round(x);
  return [
    `<path d="M${at} ${area.bottom}v5" stroke="${ink}"/>`,
    text(at, area.bottom + 20, formatLabel(tick), 'text-anchor="middle"'),
  ];
}

function drawYTick(y: number, tick: number): string[] {
  const at = round(y);
  return [
    `<path d="M${area.left} ${at}H${area.right}" stroke="${faint}"/>`,
    text(area.left - 8, at + 4, formatLabel(tick), 'text-anchor="end"'),
  ];
}

type ToPixels = (value: number) => number;

function drawLine(
  { points, labels }: Series,
  color: string,
  toX: ToPixels,
  toY: ToPixels,
): string[] {
  const path = points.map(({ x, y }) => `${round(toX(x))} ${round(toY(y))}`).join("L");
  const shift = labels === "above" ? -9 : 18;
  return [
    `<path d="M${path}" fill="none" stroke="${color}" stroke-width="2"/>`,
    ...points.flatMap(({ x, y }) => [
      `<circle cx="${round(toX(x))}" cy="${round(toY(y))}" r="3.5" fill="${color}"/>`,
      text(
        round(toX(x)),
        round(toY(y) + shift),
        formatLabel(y),
        `text-anchor="middle" font-size="11" fill="${color}"`,
      ),
    ]),
  ];
}

function drawLegend(series: readonly Series[]): string[] {
  return series.flatMap(({ name }, index) => {
    const x = round(area.left + index * legendSpace);
    const color = colors[index % colors.length] as string;
    return [`<circle cx="${x + 4}" cy="48" r="4" fill="${color}"/>`, text(x + 14, 52, name, "")];
  });
}

function text(x: number, y: number, content: string, attributes: string): string {
  return `<text x="${x}" y="${y}" ${attributes}>${escapeXml(content)}</text>`;
}

function formatLabel(value: number): string {
  return value.toLocaleString("en", { maximumSignificantDigits: 3 });
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

function escapeXml(content: string): string {
  return content.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}

interface Scale {
  /** Maps the lowest value to 0 and the highest to 1. */
  toFraction(value: number): number;
  readonly ticks: readonly number[];
}

const steps = [1, 2, 5];
const maxTicks = 7;

/** From zero to the next round number above the highest value. */
function linearScale(values: readonly number[]): Scale {
  const max = Math.max(...values);
  const size = 10 ** Math.floor(Math.log10(max / maxTicks));
  const step = size * ([...steps, 10].find((by) => size * by * maxTicks >= max) ?? 10);
  const top = Math.ceil(max / step);
  return {
    toFraction: (value) => value / (top * step),
    ticks: Array.from({ length: top + 1 }, (_, index) => index * step),
  };
}

/** From the round number below the lowest value to the one above the highest. */
function logScale(values: readonly number[]): Scale {
  const min = roundDown(Math.min(...values));
  const max = roundUp(Math.max(...values));
  const range = Math.log10(max / min) || 1;
  return {
    toFraction: (value) => Math.log10(value / min) / range,
    ticks: createLogTicks(min, max, range > 2 ? [1] : steps),
  };
}

function createLogTicks(min: number, max: number, within: readonly number[]): number[] {
  const ticks: number[] = [];
  for (let power = Math.floor(Math.log10(min)); 10 ** power <= max; power++) {
    ticks.push(...within.map((step) => step * 10 ** power));
  }
  return ticks.filter((tick) => tick >= min && tick <= max);
}

function roundDown(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  return power * (steps.findLast((step) => step * power <= value) ?? 1);
}

function roundUp(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  return power * ([...steps, 10].find((step) => step * power >= value) ?? 10);
}

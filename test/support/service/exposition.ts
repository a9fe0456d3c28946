import { send } from "../http/http.js";

type Labels = Readonly<Record<string, string>>;

interface Sample {
  readonly name: string;
  readonly labels: Labels;
  readonly value: number;
}

/** What a scrape told. */
export interface Exposition {
  readonly text: string;
  readonly samples: readonly Sample[];
  /** The sum of all samples of a name that have these labels; zero where there are none. */
  sum(name: string, labels?: Labels): number;
}

const helpLine = /^# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) (\S.*)$/;
const typeLine = /^# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (counter|gauge|histogram)$/;
const sampleLine =
  /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? ([+-]?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|Inf)|NaN)$/;
const labelPair = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)/y;

/** Reads the text format of Prometheus, and throws at whatever is not as it must be. */
export function parseExposition(text: string): Exposition {
  if (!text.endsWith("\n")) {
    throw new Error("the last line does not end");
  }
  const samples: Sample[] = [];
  const seen = new Set<string>();
  let family = { name: "", type: "" };
  let helped = "";
  for (const line of text.split("\n").filter(Boolean)) {
    const [, help] = helpLine.exec(line) ?? [];
    const [, typed, type = ""] = typeLine.exec(line) ?? [];
    if (help !== undefined) {
      helped = fresh(seen, `family ${help}`, help);
    } else if (typed !== undefined && typed === helped) {
      family = { name: typed, type };
    } else {
      const sample = parseSample(line);
      checkName(sample, family);
      fresh(seen, `${sample.name} ${JSON.stringify(Object.entries(sample.labels).sort())}`, "");
      samples.push(sample);
    }
  }
  checkBuckets(samples);
  return {
    text,
    samples,
    sum: (name, labels = {}) =>
      samples
        .filter((sample) => sample.name === name && hasLabels(sample, labels))
        .reduce((sum, { value }) => sum + value, 0),
  };
}

/** Scrapes a server. */
export async function scrape(server: { readonly port: number }): Promise<Exposition> {
  const { status, headers, body } = await send(server, "/metrics");
  if (status !== 200 || headers["content-type"] !== "text/plain; version=0.0.4; charset=utf-8") {
    throw new Error(`${status} ${headers["content-type"]}: ${body}`);
  }
  return parseExposition(body);
}

function hasLabels(sample: Sample, labels: Labels): boolean {
  return Object.entries(labels).every(([name, value]) => sample.labels[name] === value);
}

function fresh(seen: Set<string>, what: string, name: string): string {
  if (seen.has(what)) {
    throw new Error(`${what} is there twice`);
  }
  seen.add(what);
  return name;
}

function parseSample(line: string): Sample {
  const [, name, pairs = "", value] = sampleLine.exec(line) ?? [];
  if (name === undefined) {
    throw new Error(`this is no sample: ${line}`);
  }
  const labels: Record<string, string> = {};
  for (labelPair.lastIndex = 0; labelPair.lastIndex < pairs.length; ) {
    const [, label, text = ""] = labelPair.exec(pairs) ?? [];
    if (label === undefined || label in labels) {
      throw new Error(`these are no labels: ${line}`);
    }
    labels[label] = text;
  }
  return { name, labels, value: Number(value?.replace("Inf", "Infinity")) };
}

function checkName({ name, labels, value }: Sample, family: { name: string; type: string }): void {
  const parts = family.type === "histogram" ? ["_bucket", "_sum", "_count"] : [""];
  if (!parts.some((part) => name === `${family.name}${part}`)) {
    throw new Error(`${name} does not belong to ${family.name}`);
  }
  if (name.endsWith("_bucket") && labels.le === undefined) {
    throw new Error(`${name} has no bound`);
  }
  if (Number.isNaN(value) || (family.type !== "gauge" && value < 0)) {
    throw new Error(`${name} cannot be ${value}`);
  }
}

/** Each bucket holds what the smaller ones do, and the last one all. */
function checkBuckets(samples: readonly Sample[]): void {
  let least = 0;
  for (const [at, { name, labels, value }] of samples.entries()) {
    if (!name.endsWith("_bucket")) {
      continue;
    }
    if (value < least) {
      throw new Error(`${name} holds less up to ${labels.le} than before`);
    }
    least = labels.le === "+Inf" ? 0 : value;
    if (labels.le === "+Inf" && samples[at + 2]?.value !== value) {
      throw new Error(`${name} does not hold all`);
    }
  }
}

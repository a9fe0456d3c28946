import { send } from "../http/http.js";

type Labels = Readonly<Record<string, string>>;

interface Sample {
  readonly name: string;
  readonly labels: Labels;
  readonly value: number;
}

/** A parsed scrape of metrics in the Prometheus text format. */
export interface Exposition {
  readonly text: string;
  readonly samples: readonly Sample[];
  /** The sum of all samples with this name and these labels, or 0. */
  sum(name: string, labels?: Labels): number;
}

const helpLine = /^# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) (\S.*)$/;
const typeLine = /^# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (counter|gauge|histogram)$/;
const sampleLine =
  /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? ([+-]?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|Inf)|NaN)$/;
const labelPair = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)/y;

/** Parses the Prometheus text format. Throws if it is malformed or inconsistent. */
export function parseExposition(text: string): Exposition {
  if (!text.endsWith("\n")) {
    throw new Error("the last line has no line feed");
  }
  const samples: Sample[] = [];
  const seen = new Set<string>();
  let family = { name: "", type: "" };
  let describedFamily = "";
  for (const line of text.split("\n").filter(Boolean)) {
    const [, help] = helpLine.exec(line) ?? [];
    const [, typed, type = ""] = typeLine.exec(line) ?? [];
    if (help !== undefined) {
      requireUnique(seen, `family ${help}`);
      describedFamily = help;
    } else if (typed !== undefined && typed === describedFamily) {
      family = { name: typed, type };
    } else {
      const sample = parseSample(line);
      checkName(sample, family);
      requireUnique(seen, `${sample.name} ${JSON.stringify(Object.entries(sample.labels).sort())}`);
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

function requireUnique(seen: Set<string>, entry: string): void {
  if (seen.has(entry)) {
    throw new Error(`duplicate ${entry}`);
  }
  seen.add(entry);
}

function parseSample(line: string): Sample {
  const [, name, pairs = "", value] = sampleLine.exec(line) ?? [];
  if (name === undefined) {
    throw new Error(`invalid sample: ${line}`);
  }
  const labels: Record<string, string> = {};
  for (labelPair.lastIndex = 0; labelPair.lastIndex < pairs.length; ) {
    const [, label, text = ""] = labelPair.exec(pairs) ?? [];
    if (label === undefined || label in labels) {
      throw new Error(`invalid labels: ${line}`);
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
  // As `promtool check metrics` requires.
  if (family.type !== "counter" && family.name.endsWith("_total")) {
    throw new Error(`${name} is not a counter`);
  }
  if (labels.quantile !== undefined) {
    throw new Error(`${name} is not a summary`);
  }
  if (name.endsWith("_bucket") && labels.le === undefined) {
    throw new Error(`${name} has no label le`);
  }
  if (Number.isNaN(value) || (family.type !== "gauge" && value < 0)) {
    throw new Error(`${name} cannot be ${value}`);
  }
}

/** Buckets must be cumulative, and the last one must equal the count. */
function checkBuckets(samples: readonly Sample[]): void {
  let previous = 0;
  for (const [at, { name, labels, value }] of samples.entries()) {
    if (!name.endsWith("_bucket")) {
      continue;
    }
    if (value < previous) {
      throw new Error(`${name} decreases at le=${labels.le}`);
    }
    previous = labels.le === "+Inf" ? 0 : value;
    if (labels.le === "+Inf" && samples[at + 2]?.value !== value) {
      throw new Error(`${name} does not match its count`);
    }
  }
}

/** Figures of one name, in the form in which prom-client hands them over and adds them up. */
export interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  /** What becomes of the figures of several processes. */
  readonly aggregator: "sum" | "min" | "max" | "first";
  readonly values: readonly Value[];
}

export interface Value {
  readonly value: number;
  readonly labels: Labels;
  /** Where it is not the name of the family: those of the parts of a histogram. */
  readonly metricName?: string;
}

/** What figures of one name are told apart by. No value is a caller's own word: there would be no end of them. */
export type Labels = Readonly<Record<string, string | number>>;

/** All figures of a process at one moment. */
export type Snapshot = readonly Family[];

export function counter(name: string, help: string, values: readonly Value[]): Family {
  return { name, help, type: "counter", aggregator: "sum", values };
}

export function gauge(
  name: string,
  help: string,
  values: readonly Value[],
  aggregator: Family["aggregator"] = "sum",
): Family {
  return { name, help, type: "gauge", aggregator, values };
}

/** The one value of a family without labels. */
export function only(value: number): Value[] {
  return [{ value, labels: {} }];
}

import { spreadOf } from "./statistics.js";
import { asText, type Column, tableOf, withRange } from "./table.js";

/** A performance goal, and what was measured for it. */
export interface Goal {
  readonly path: string;
  /** The goal as shown to people. */
  readonly promise: string;
  readonly limit: { readonly atMost: number } | { readonly atLeast: number };
  /** One per round, `NaN` if it could not be measured. */
  readonly figures: readonly number[];
  readonly digits?: number;
}

/** `near`: missed by less than the rounds differ, so another run may meet it. */
export type Verdict = "met" | "near" | "missed" | "unknown";

export function judge({ limit, figures }: Goal): Verdict {
  const { median, low, high } = spreadOf(figures);
  if (Number.isNaN(median)) {
    return "unknown";
  }
  const [isMet, isNear] =
    "atMost" in limit
      ? [median <= limit.atMost, low <= limit.atMost]
      : [median >= limit.atLeast, high >= limit.atLeast];
  if (isMet) {
    return "met";
  }
  return isNear ? "near" : "missed";
}

const words: Record<Verdict, string> = {
  met: "✓",
  near: "✗, within the spread",
  missed: "✗",
  unknown: "not measured",
};

const goalColumns: readonly Column<Goal>[] = [
  { title: "Path", isText: true, text: ({ path }) => path },
  { title: "Goal", isText: true, text: ({ promise }) => promise },
  { title: "Measured", text: ({ figures, digits = 2 }) => withRange(spreadOf(figures), digits) },
  { title: "Met", isText: true, text: (goal) => words[judge(goal)] },
];

/** The goals with a check mark for each that is met. */
export function goalsToText(goals: readonly Goal[]): string {
  const table = asText(tableOf(goalColumns, goals));
  return `\ngoals\n\n${table}\n\n- Median of the rounds (lowest–highest). Ratios compare CPU time per request within one round unless stated otherwise.\n`;
}

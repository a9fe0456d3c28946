import { spreadOf } from "./statistics.js";
import { type Column, withRange } from "./table.js";

/** Something that the project has promised of its performance, and what was seen of it. */
export interface Goal {
  readonly path: string;
  /** In words. */
  readonly promise: string;
  readonly limit: { readonly atMost: number } | { readonly atLeast: number };
  /** One of each round. Those that could not be taken are not numbers. */
  readonly figures: readonly number[];
  readonly digits?: number;
}

/** `near` is missed by less than the rounds differ: another run may meet it. */
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

export const goalColumns: readonly Column<Goal>[] = [
  { title: "Path", isText: true, text: ({ path }) => path },
  { title: "Goal", isText: true, text: ({ promise }) => promise },
  { title: "Measured", text: ({ figures, digits = 2 }) => withRange(spreadOf(figures), digits) },
  { title: "Met", isText: true, text: (goal) => words[judge(goal)] },
];

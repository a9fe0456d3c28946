import type { Goal } from "./goals.js";
import type { Section } from "./report.js";

/** The results of one part of the benchmark, and the goals that they decide. */
export interface Findings {
  readonly section: Section;
  readonly goals: readonly Goal[];
}

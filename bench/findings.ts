import type { Goal } from "./goals.js";
import type { Section } from "./report.js";

/** What one part of the benchmark found out. */
export interface Findings {
  readonly section: Section;
  readonly goals: readonly Goal[];
}

/**
 * `npm test` runs the quick suite. `npm run test:full` sets this variable and
 * adds the files named `*.full.test.ts`.
 */
export const isFullSuite = process.env.TEST_SUITE === "full";

/** How often to repeat something: less in `npm test` than in `npm run test:full`. */
export function repetitions({ quick, full }: { quick: number; full: number }): number {
  return isFullSuite ? full : quick;
}

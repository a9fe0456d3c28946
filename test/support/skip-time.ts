import { jest } from "@jest/globals";

/** Lets the clock that buckets are refilled by run ahead by so many milliseconds more, until mocks are restored. */
export function createSkipTime(): (milliseconds: number) => void {
  const now = performance.now.bind(performance);
  let skipped = 0;
  jest.spyOn(performance, "now").mockImplementation(() => now() + skipped);
  return (milliseconds) => {
    skipped += milliseconds;
  };
}

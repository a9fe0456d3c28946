/** Whether a value surely keeps a rule. */
export type Test = (value: unknown) => boolean;

/** Thrown while rules are read, where one of them is not understood. */
export class NotUnderstood extends Error {}

/** Whether a value surely keeps all of the rules. */
export function all(tests: readonly Test[]): Test {
  const [only] = tests;
  if (only && tests.length === 1) {
    return only;
  }
  return (value) => {
    for (const test of tests) {
      if (!test(value)) {
        return false;
      }
    }
    return true;
  };
}

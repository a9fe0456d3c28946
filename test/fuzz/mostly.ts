import fc from "fast-check";

/** The usual, but now and then another: one thing that is wrong tells more than many. */
export function mostly<T>(usual: T, others: fc.Arbitrary<T>): fc.Arbitrary<T> {
  return fc.oneof({ weight: 5, arbitrary: fc.constant(usual) }, { weight: 2, arbitrary: others });
}

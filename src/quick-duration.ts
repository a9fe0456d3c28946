import type { Duration } from "@bufbuild/protobuf/wkt";
import type { DurationRules } from "../gen/buf/validate/validate_pb.js";
import { checkKnown } from "./quick-rules.js";
import type { Test } from "./quick-test.js";

/** What a duration must keep. */
export function durationTests(rules: DurationRules): readonly Test[] {
  checkKnown(rules);
  // Of bounds that exclude each other, which mean what lies outside, nothing is sure.
  return [...lowestTests(rules.greaterThan), ...highestTests(rules.lessThan)];
}

function lowestTests({ case: kind, value: lowest }: DurationRules["greaterThan"]): readonly Test[] {
  switch (kind) {
    case undefined:
      return [];
    case "gt":
      return [(value) => compare(value as Duration, lowest) > 0];
    case "gte":
      return [(value) => compare(value as Duration, lowest) >= 0];
  }
}

function highestTests({ case: kind, value: highest }: DurationRules["lessThan"]): readonly Test[] {
  switch (kind) {
    case undefined:
      return [];
    case "lt":
      return [(value) => compare(value as Duration, highest) < 0];
    case "lte":
      return [(value) => compare(value as Duration, highest) <= 0];
  }
}

/** Compares as the validator does, also where nanoseconds make up more than a second. */
function compare(one: Duration, other: Duration): number {
  if (one.seconds === other.seconds) {
    return one.nanos - other.nanos;
  }
  return one.seconds < other.seconds ? -1 : 1;
}

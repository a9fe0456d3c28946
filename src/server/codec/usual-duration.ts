import type { Duration } from "@bufbuild/protobuf/wkt";

/** The spelling of a duration that is not negative. */
export const durationPattern = /^([0-9]+)([.][0-9]{1,9})?s$/;

/** About ten thousand years: protobuf knows no longer duration. */
const mostSeconds = 315_576_000_000;

/** Reads a duration in its usual spelling, or nothing where it is negative or spelled otherwise. */
export function readUsualDuration(value: unknown): Duration | undefined {
  const match = typeof value === "string" ? durationPattern.exec(value) : null;
  const seconds = Number(match?.[1]);
  if (!(seconds <= mostSeconds)) {
    return undefined;
  }
  const digits = match?.[2]?.slice(".".length) ?? "";
  return {
    $typeName: "google.protobuf.Duration",
    seconds: BigInt(seconds),
    nanos: Number(digits.padEnd(9, "0")),
  };
}

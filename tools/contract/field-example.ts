import type { JsonValue } from "@bufbuild/protobuf";
import type { FieldRules } from "./rules.js";

/** The example in the rules of a field or of its items. */
export function exampleIn(rules: FieldRules): JsonValue | undefined {
  const { string, int32, bool, duration, field_mask, timestamp } = rules.repeated?.items ?? rules;
  const asWritten = string ?? int32 ?? bool ?? duration ?? field_mask;
  return asWritten?.example?.[0] ?? timestamp?.example?.map(formatTimestamp)[0];
}

/** Formats a timestamp as the service does, with milliseconds. */
export function formatTimestamp(timestamp: string): string {
  return new Date(timestamp).toISOString();
}

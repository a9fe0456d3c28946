import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { DurationSchema, TimestampSchema } from "@bufbuild/protobuf/wkt";
import { checkCalendar } from "./calendar.js";

/** Throws where a JSON value has something at its place that only looks like what it should be. */
type Check = (value: unknown) => void;

const duration = /^-?[0-9]+(?:[.][0-9]{1,9})?s$/;

/**
 * Creates a check of the moments and durations in the JSON of a plain message
 * that the library has read: it takes a day that the calendar does not have for
 * one of the next month, and overlooks what stands behind a duration.
 */
export function createMomentCheck(schema: DescMessage): Check {
  switch (schema.typeName) {
    case TimestampSchema.typeName:
      return (value) => checkCalendar(value as string);
    case DurationSchema.typeName:
      return checkDuration;
    default:
      return messageCheck(schema);
  }
}

function checkDuration(value: unknown): void {
  if (!duration.test(value as string)) {
    throw new Error(`cannot read ${JSON.stringify(value)} as a duration such as 3600s`);
  }
}

function messageCheck({ fields }: DescMessage): Check {
  const checks = new Map(
    fields.flatMap((field) => {
      const check = field.message && fieldCheck(field, field.message);
      return check ? [field.name, field.jsonName].map((name) => [name, check] as const) : [];
    }),
  );
  return (value) => {
    for (const [name, item] of Object.entries(value as object)) {
      if (item !== null) {
        checks.get(name)?.(item);
      }
    }
  };
}

function fieldCheck({ fieldKind }: DescField, message: DescMessage): Check {
  const check = createMomentCheck(message);
  return fieldKind === "list" ? (items) => (items as unknown[]).forEach(check) : check;
}

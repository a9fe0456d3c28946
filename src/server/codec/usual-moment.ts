import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { toTimestamp } from "../../moments.js";
import { dateText } from "./date-text.js";

const usual = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,3})?Z$/;
const dateLength = "2030-01-31T12:00:00".length;

/** Reads a moment since 1970 in its usual spelling, or nothing where it is spelled otherwise. */
export function readUsualMoment(value: unknown): Timestamp | undefined {
  if (typeof value !== "string" || !usual.test(value)) {
    return undefined;
  }
  const moment = Date.parse(value);
  // A day that the calendar does not have would be read as one of the next.
  const isInCalendar =
    moment >= 0 && dateText(Math.floor(moment / 1000)) === value.slice(0, dateLength);
  return isInCalendar ? toTimestamp(moment) : undefined;
}

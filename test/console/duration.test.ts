import { describe, expect, it } from "@jest/globals";
import { formatCountdown, formatRelative } from "../../web/console/ui/duration.js";

const minute = 60;
const hour = 60 * minute;
const day = 24 * hour;

describe("durations in the console", () => {
  it.each([
    [-8, "8 seconds ago"],
    [-59.6, "1 minute ago"],
    [-(hour - 31), "59 minutes ago"],
    [hour - 30, "in 1 hour"],
    [90 * minute, "in 2 hours"],
    [day - 31 * minute, "in 23 hours"],
    [day - 30 * minute, "in 1 day"],
    [30 * day - hour, "in 30 days"],
    [400 * day, "in 400 days"],
    [800 * day, "in 2 years"],
  ])("reads %d seconds from now as %s", (seconds, text) => {
    const now = Date.parse("2026-01-01T00:00:00Z");
    expect(formatRelative(now + seconds * 1_000, now)).toBe(text);
  });

  it.each([
    [9, "0:09"],
    [179, "2:59"],
    [3_600, "1:00:00"],
    [3_779, "1:02:59"],
  ])("counts %d seconds down as %s", (seconds, text) => {
    expect(formatCountdown(seconds)).toBe(text);
  });
});

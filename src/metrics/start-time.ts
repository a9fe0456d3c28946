import { type Family, gauge, only } from "./family.js";

/** When this process began; of several that are one service, the first. */
export function startTime(): Family {
  return gauge(
    "latchkey_start_time_seconds",
    "When the service was started, in seconds since 1970.",
    only(Math.round(performance.timeOrigin) / 1_000),
    "min",
  );
}

let clockOffset = 0;

/**
 * Reads the clock of the service from the Date header, because the local clock may differ. The
 * header has whole seconds, so it only limits the offset.
 */
export function syncServiceClock(headers: Headers, sentAt: number): void {
  const date = Date.parse(headers.get("date") ?? "");
  if (!Number.isNaN(date)) {
    const [min, max] = [date - Date.now(), date + 1_000 - sentAt];
    clockOffset = Math.min(Math.max(clockOffset, min), max);
  }
}

/** The current time of the service, accurate to about a second. */
export function serviceNow(): number {
  return Date.now() + clockOffset;
}

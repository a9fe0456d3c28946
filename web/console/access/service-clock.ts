/** Rounding and latency, in milliseconds. */
const tolerance = 2_000;

let offset = 0;

/** Reads the clock of the service from the Date header. The local clock may differ. */
export function syncServiceClock(headers: Headers): void {
  const serverTime = Date.parse(headers.get("date") ?? "");
  if (!Number.isNaN(serverTime)) {
    const difference = serverTime - Date.now();
    offset = Math.abs(difference) > tolerance ? difference : 0;
  }
}

/** The current time of the service, accurate to about two seconds. */
export function serviceNow(): number {
  return Date.now() + offset;
}

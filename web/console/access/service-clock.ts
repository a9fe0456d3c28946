/** What rounding and the way of an answer may explain, in milliseconds. */
const tolerance = 2_000;

let ahead = 0;

/** Notes by which time the service answered: the clock of this machine may be another one. */
export function syncServiceClock(headers: Headers): void {
  const told = Date.parse(headers.get("date") ?? "");
  if (!Number.isNaN(told)) {
    const difference = told - Date.now();
    ahead = Math.abs(difference) > tolerance ? difference : 0;
  }
}

/** The present moment by the clock of the service, to about two seconds. */
export function serviceNow(): number {
  return Date.now() + ahead;
}

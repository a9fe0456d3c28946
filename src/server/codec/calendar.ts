/** Throws where the calendar has no such day or hour: it would be read as one of the next. */
export function checkCalendar(moment: string): void {
  const hour = moment.slice(0, "2030-01-31T12".length);
  if (new Date(`${hour}:00Z`).toISOString().slice(0, hour.length) !== hour) {
    throw new Error(`there is no ${hour}`);
  }
}

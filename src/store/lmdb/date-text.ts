/** A moment as the texts of rows tell it. */
export function toDate(moment: number | undefined): string | undefined {
  return moment === undefined ? undefined : new Date(moment).toISOString();
}

export function toMoment(date: string | undefined): number | undefined {
  return date === undefined ? undefined : Date.parse(date);
}

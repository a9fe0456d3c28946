/** Whether a text is a UUID, in upper or lower case. Separate from `uuid.ts`, which browsers cannot run. */
export function isId(text: string): boolean {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text);
}

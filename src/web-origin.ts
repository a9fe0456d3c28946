/** The origin of a web address as browsers send it, or `undefined` where the text is no such address. */
export function originOf(address: string): string | undefined {
  return URL.canParse(address) ? new URL(address).origin : undefined;
}

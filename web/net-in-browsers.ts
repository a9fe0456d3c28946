/** What the code that pages share with the server needs of `node:net`. */
const byte = "(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)";
const ipv4 = new RegExp(`^${byte}(?:\\.${byte}){3}$`);

export function isIPv4(text: string): boolean {
  return ipv4.test(text);
}

/** Browsers have no other way to tell than whether it could be the host of an address. */
export function isIPv6(text: string): boolean {
  return URL.canParse(`http://[${text.split("%", 1)[0]}]/`);
}

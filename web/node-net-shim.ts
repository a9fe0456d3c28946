/** The part of `node:net` that shared code uses, for browsers. */
const byte = "(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)";
const ipv4 = new RegExp(`^${byte}(?:\\.${byte}){3}$`);

export function isIPv4(text: string): boolean {
  return ipv4.test(text);
}

/** Browsers can check IPv6 only as the host of a URL. */
export function isIPv6(text: string): boolean {
  return URL.canParse(`http://[${text.split("%", 1)[0]}]/`);
}

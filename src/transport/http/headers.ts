import type { IncomingHttpHeaders } from "node:http";

/** The headers of an answer: names and values in turn. */
export type HeaderList = readonly string[];

/**
 * The headers of a request as the web has them. To look one up, which is what
 * nearly every call does with them, makes nothing new; for anything else the
 * real ones are made.
 */
export class HeadersView implements Headers {
  private made: Headers | undefined;

  constructor(private readonly source: IncomingHttpHeaders) {}

  get(name: string): string | null {
    if (this.made) {
      return this.made.get(name);
    }
    return textOf(this.source[name] ?? this.source[name.toLowerCase()]);
  }

  has(name: string): boolean {
    return this.get(name) !== null;
  }

  append(name: string, value: string): void {
    this.real.append(name, value);
  }

  delete(name: string): void {
    this.real.delete(name);
  }

  set(name: string, value: string): void {
    this.real.set(name, value);
  }

  getSetCookie(): string[] {
    return this.real.getSetCookie();
  }

  forEach(callback: (value: string, name: string, headers: Headers) => void): void {
    this.real.forEach(callback);
  }

  entries() {
    return this.real.entries();
  }

  keys() {
    return this.real.keys();
  }

  values() {
    return this.real.values();
  }

  [Symbol.iterator]() {
    return this.real[Symbol.iterator]();
  }

  private get real(): Headers {
    this.made ??= toHeaders(this.source);
    return this.made;
  }
}

/** The headers of a request, without the pseudo-headers of HTTP/2. */
function toHeaders(source: IncomingHttpHeaders): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(source)) {
    const text = textOf(value);
    if (text !== null && !name.startsWith(":")) {
      headers.set(name, text);
    }
  }
  return headers;
}

/** The text of a header, or nothing: what every object has, like its constructor, is no header. */
function textOf(value: unknown): string | null {
  if (typeof value === "string") {
    return value;
  }
  return Array.isArray(value) ? value.join(", ") : null;
}

/** Answers may carry keys. */
export const neverKept: HeaderList = ["cache-control", "no-store"];

/**
 * What keeps a browser from taking an answer for a page: it guesses no type,
 * and what it shows may load nothing and stand in no frame. More would say
 * the same again: a key is sent in a header of its own, so nothing that a page
 * includes without asking, or links to, comes with one.
 */
export const noPage: HeaderList = [
  ...["x-content-type-options", "nosniff"],
  ...["content-security-policy", "default-src 'none'; frame-ancestors 'none'"],
];

/** Tells browsers that came by TLS to come by nothing else for a year. */
export const tlsOnly = ["strict-transport-security", "max-age=31536000"] as const;

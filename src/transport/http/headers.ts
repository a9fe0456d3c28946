import type { IncomingHttpHeaders } from "node:http";

/** Response headers: names and values in alternation. */
export type HeaderList = readonly string[];

/**
 * The headers of a request as a `Headers` object. A lookup, which is all that
 * most calls need, allocates nothing; other methods create real `Headers`.
 */
export class HeadersView implements Headers {
  private created: Headers | undefined;

  constructor(private readonly source: IncomingHttpHeaders) {}

  get(name: string): string | null {
    if (this.created) {
      return this.created.get(name);
    }
    return textOf(this.source[name] ?? this.source[name.toLowerCase()]);
  }

  has(name: string): boolean {
    return this.get(name) !== null;
  }

  append(name: string, value: string): void {
    this.full.append(name, value);
  }

  delete(name: string): void {
    this.full.delete(name);
  }

  set(name: string, value: string): void {
    this.full.set(name, value);
  }

  getSetCookie(): string[] {
    return this.full.getSetCookie();
  }

  forEach(callback: (value: string, name: string, headers: Headers) => void): void {
    this.full.forEach(callback);
  }

  entries() {
    return this.full.entries();
  }

  keys() {
    return this.full.keys();
  }

  values() {
    return this.full.values();
  }

  [Symbol.iterator]() {
    return this.full[Symbol.iterator]();
  }

  private get full(): Headers {
    this.created ??= toHeaders(this.source);
    return this.created;
  }
}

/** Converts request headers, without the HTTP/2 pseudo-headers. */
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

/** The text of a header, or `null`. Inherited properties such as `constructor` are not headers. */
function textOf(value: unknown): string | null {
  if (typeof value === "string") {
    return value;
  }
  return Array.isArray(value) ? value.join(", ") : null;
}

/** Whether the content type is one of gRPC, which is not gRPC-Web. */
export function isGrpcType({ "content-type": type = "" }: IncomingHttpHeaders): boolean {
  return /^application\/grpc(?!-web)/.test(type);
}

export const toHeaderList = (headers: Readonly<Record<string, string>>): HeaderList =>
  Object.entries(headers).flat();

/** Responses may contain keys. */
export const noStore: HeaderList = ["cache-control", "no-store"];

/**
 * Prevents browsers from treating a response as a page: no content sniffing, no
 * subresources, no frames. More is not needed: keys are sent in a custom header,
 * so requests that a page embeds or links to never carry one.
 */
export const securityHeaders = toHeaderList({
  "x-content-type-options": "nosniff",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
});

/** Browsers that connected over TLS require it for a year. */
export const strictTransportSecurity = ["strict-transport-security", "max-age=31536000"] as const;

/** Whether an `Accept` or `Accept-Encoding` header lists a value, and does not refuse it with `q=0`. */
export function accepts(header: string | string[] | undefined, value: string): boolean {
  return String(header ?? "")
    .toLowerCase()
    .split(",")
    .some((entry) => {
      const [name, ...parameters] = entry.split(";").map((part) => part.trim());
      return name === value && !parameters.some((one) => /^q=0(?:\.0*)?$/.test(one));
    });
}

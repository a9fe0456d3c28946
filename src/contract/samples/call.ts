import { defaultKeyHeader } from "../headers.js";

interface Connection {
  /** The address of the service, such as `http://localhost:8080`. */
  readonly origin: string;
  /** The key, if it is part of the program. By default, the program reads SVC_API_KEY. */
  readonly key?: string | undefined;
  /** The header for the key. Default: `SVC-API-KEY`. */
  readonly keyHeader?: string | undefined;
}

/** A REST call. */
export interface SampleCall extends Omit<Connection, "key"> {
  readonly method: string;
  /** The path and query, percent-encoded. */
  readonly path: string;
  /** As for a check. `null` sends no key. */
  readonly key?: string | null | undefined;
  /** More headers, such as `If-Match`. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** The JSON value to send. Without properties that are undefined. */
  readonly body?: unknown;
  /** The form to send instead of JSON. */
  readonly form?: Readonly<Record<string, string>> | undefined;
}

/** A check of a caller's key. */
export interface SampleCheck extends Connection {
  /** The permission that the caller needs. */
  readonly permission: string;
}

/** A header. A value of `undefined` stands for the variable SVC_API_KEY. */
type Header = readonly [name: string, value: string | undefined];

/** The headers of a call. */
export function headersOf(call: Omit<SampleCall, "path">): Header[] {
  const { key, keyHeader = defaultKeyHeader, headers = {}, body, form } = call;
  const others = {
    ...headers,
    ...(body !== undefined && { "Content-Type": "application/json" }),
    ...(form && { "Content-Type": "application/x-www-form-urlencoded" }),
  };
  return [...(key === null ? [] : [[keyHeader, key] as const]), ...Object.entries(others)];
}

/** The URL of a call. Brackets and braces are encoded, because curl expands them. */
export function urlOf({ origin, path }: Pick<SampleCall, "origin" | "path">): string {
  return new URL(origin + path).href.replaceAll(/[[\]{}]/g, encodeURIComponent);
}

/** The call that checks a caller's key. */
export function checkUrl({ origin }: SampleCheck): string {
  return urlOf({ origin, path: "/access/check" });
}

/** How a language writes JSON values. */
export interface Literals {
  readonly literal: (value: string | number | boolean | null) => string;
  /** The name of a property. */
  readonly name: (name: string) => string;
  /** Around the properties of an object on one line. */
  readonly padding: "" | " ";
  /** After the last item of a list with one item per line. */
  readonly lastComma: "" | ",";
  readonly indent: string;
}

export const json: Literals = {
  literal: JSON.stringify,
  name: (name) => JSON.stringify(name),
  padding: " ",
  lastComma: "",
  indent: "  ",
};

/** Lists and objects up to this length are written on one line. */
const maxWidth = 60;

/** Writes a JSON value. Lines after the first start with the indentation. */
export function printValue(value: unknown, language: Literals, indentation = ""): string {
  if (typeof value !== "object" || value === null) {
    return language.literal(value as string | number | boolean | null);
  }
  const inner = indentation + language.indent;
  const isList = Array.isArray(value);
  const items = isList
    ? value.map((item) => printValue(item, language, inner))
    : Object.entries(value).map(
        ([name, item]) => `${language.name(name)}: ${printValue(item, language, inner)}`,
      );
  const [open, close] = isList ? "[]" : "{}";
  const padding = isList || items.length === 0 ? "" : language.padding;
  const line = `${open}${padding}${items.join(", ")}${padding}${close}`;
  if (line.length <= maxWidth && !line.includes("\n")) {
    return line;
  }
  const lines = items.map((item) => inner + item).join(",\n");
  return `${open}\n${lines}${language.lastComma}\n${indentation}${close}`;
}

/** Joins the lines of a program. `false` stands for no line. */
export function joinLines(...lines: readonly (string | false)[]): string {
  return lines.filter((line) => line !== false).join("\n");
}

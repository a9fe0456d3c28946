import fc from "fast-check";
import { mostlyValid } from "./arbitraries.js";

/** Bytes with one request, which some parsers read as two. */
export interface FramedInput {
  readonly text: string;
  /** Whether the bytes contain a second request by the HTTP specification, which may get a response. */
  readonly holdsTwo: boolean;
}

const lengths = (length: number) => [
  ...[`${length}`, "0", `${length - 1}`, `${length + 1}`, `+${length}`, `-${length}`, "-0", ""],
  ...[
    `0x${length.toString(16)}`,
    `0${length}`,
    `${length}.0`,
    `${length}e0`,
    `${length}, ${length}`,
  ],
  ...[
    `${length},0`,
    `0,${length}`,
    `${length};`,
    `"${length}"`,
    `${length} 0`,
    "99999999999999999999",
  ],
];
const codings = [
  ...["chunked", "CHUNKED", "xchunked", "chunkedx", "chunked, identity", "identity, chunked", ","],
  ...[
    "chunked, chunked",
    "gzip, chunked",
    "identity",
    "",
    '"chunked"',
    "chunked;q=1",
    "chunked\u000b",
  ],
  ...["\u000bchunked", "chunked\u0000", "chunked, ", ", chunked", "chun ked", "\u0000", "chünked"],
];
const names = {
  length: [
    "content-length",
    "Content-Length",
    "content-length ",
    " content-length",
    "content_length",
  ],
  coding: [
    ...["transfer-encoding", "Transfer-Encoding", "transfer-encoding ", " transfer-encoding"],
    ...[
      "transfer_encoding",
      "transfer-encoding\t",
      "te",
      "transfer-encoding\u0000",
      "x\rtransfer-encoding",
    ],
  ],
};
const separators = [":", ": ", ":\t", ":  ", " : ", ":\r\n ", ":\n ", ":\u0000"];
const lineEnds = ["\r\n", "\n", "\r", "\r\r\n", "\n\r\n", "\r\n ", "\u0000\r\n", "\u0085"];
const sizes = [
  "0",
  "00",
  "0;a=b",
  "0;\n",
  "0x0",
  "+0",
  "-0",
  " 0",
  "0 ",
  "0\n",
  "",
  "ffffffffffffffffff",
];

/**
 * An unauthenticated request with one or more framing headers. Its body, or the
 * bytes after it, contain an authenticated request.
 */
export function framedInputs(key: string): fc.Arbitrary<FramedInput> {
  const inner = `GET /whoami HTTP/1.1\r\nhost: a\r\nconnection: close\r\nsvc-api-key: ${key}\r\n\r\n`;
  const chunk = `${inner.length.toString(16)}\r\n${inner}\r\n0\r\n\r\n`;
  const payload = fc.oneof(
    fc.constantFrom(inner, chunk, `0\r\n\r\n${inner}`),
    fc.constantFrom(...sizes).map((size) => `${size}\r\n\r\n${inner}`),
    fc.constantFrom(...sizes).map((size) => `1\r\nZ\r\n${size}\r\n${inner}`),
    fc.constant(`1\r\nZZ\r\n0\r\n\r\n${inner}`),
    fc.constant(`1\nZ\n0\n\n${inner}`),
    fc.constant(`0\r\nsvc-api-key: ${key}\r\n\r\n${inner}`),
  );
  return payload.chain((body) => {
    const line = fc
      .oneof(
        fc.tuple(
          mostlyValid("content-length", fc.constantFrom(...names.length)),
          fc.constantFrom(...lengths(body.length)),
        ),
        fc.tuple(
          mostlyValid("transfer-encoding", fc.constantFrom(...names.coding)),
          mostlyValid("chunked", fc.constantFrom(...codings)),
        ),
        fc.constant(["x-other", "1"] as const),
      )
      .chain(([name, value]) =>
        fc
          .tuple(
            mostlyValid(": ", fc.constantFrom(...separators)),
            mostlyValid("\r\n", fc.constantFrom(...lineEnds)),
          )
          .map(([separator, end]) => name + separator + value + end),
      );
    return fc
      .tuple(
        fc.array(line, { minLength: 1, maxLength: 3 }),
        mostlyValid("1.1", fc.constantFrom(...["1.0", "1.2", "2.0"])),
      )
      .map(([lines, version]) => {
        const head = `POST /access/check HTTP/${version}\r\nhost: a\r\nsvc-api-key: junk\r\n`;
        const text = `${head}${lines.join("")}\r\n${body}`;
        return { text, holdsTwo: findNextRequest(text) === text.indexOf(inner) };
      });
  });
}

const field = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([\t\x20-\x7e\x80-\xff]*?)[ \t]*$/;

/** A chunked body. */
const chunkedBody = /^(?:[1-9a-f][0-9a-f]*\r\n.*?\r\n)?0+(?:;[^\r\n]*)?\r\n(?:[^\r\n]+\r\n)*\r\n/is;

/** Returns where the next request starts by the HTTP specification, or undefined if that is ambiguous. */
function findNextRequest(text: string): number | undefined {
  const end = findRequestEnd(text);
  // Empty lines before a request are skipped.
  return end === undefined
    ? undefined
    : end + (/^(?:\r\n)*/.exec(text.slice(end))?.[0].length ?? 0);
}

function findRequestEnd(text: string): number | undefined {
  const end = text.indexOf("\r\n\r\n");
  const [, ...lines] = text.slice(0, end).split("\r\n");
  const fields = lines.map((line) => field.exec(line));
  if (end < 0 || fields.includes(null) || !text.includes(" HTTP/1.1\r\n")) {
    return undefined;
  }
  const getValues = (name: string) =>
    fields.flatMap((it) => (it?.[1]?.toLowerCase() === name ? (it[2] ?? "") : []));
  const [lengths, codings] = [getValues("content-length"), getValues("transfer-encoding")];
  const start = end + "\r\n\r\n".length;
  if (codings.length > 0) {
    // The last coding must be chunked.
    const isChunked = lengths.length === 0 && /(?:^|,[ \t]*)chunked$/i.test(codings.join(", "));
    const match = isChunked ? chunkedBody.exec(text.slice(start)) : null;
    return match ? start + match[0].length : undefined;
  }
  const [length = "0", ...others] = lengths;
  return /^\d{1,9}$/.test(length) && others.length === 0 ? start + Number(length) : undefined;
}

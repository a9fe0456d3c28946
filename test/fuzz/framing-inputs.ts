import fc from "fast-check";
import { mostly } from "./mostly.js";

/** Bytes that hold one request, or what some would take for two. */
export interface FramedInput {
  readonly text: string;
  /** Whether the second request is one by the letter of HTTP, and may be answered. */
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
const ends = ["\r\n", "\n", "\r", "\r\r\n", "\n\r\n", "\r\n ", "\u0000\r\n", "\u0085"];
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
 * A request that nobody may make, which says in one way or several where it
 * ends; within its body, or behind it, another that its sender may make.
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
          mostly("content-length", fc.constantFrom(...names.length)),
          fc.constantFrom(...lengths(body.length)),
        ),
        fc.tuple(
          mostly("transfer-encoding", fc.constantFrom(...names.coding)),
          mostly("chunked", fc.constantFrom(...codings)),
        ),
        fc.constant(["x-other", "1"] as const),
      )
      .chain(([name, value]) =>
        fc
          .tuple(
            mostly(": ", fc.constantFrom(...separators)),
            mostly("\r\n", fc.constantFrom(...ends)),
          )
          .map(([separator, end]) => name + separator + value + end),
      );
    return fc
      .tuple(
        fc.array(line, { minLength: 1, maxLength: 3 }),
        mostly("1.1", fc.constantFrom(...["1.0", "1.2", "2.0"])),
      )
      .map(([lines, version]) => {
        const head = `POST /access/check HTTP/${version}\r\nhost: a\r\nsvc-api-key: junk\r\n`;
        const text = `${head}${lines.join("")}\r\n${body}`;
        return { text, holdsTwo: startOfNext(text) === text.indexOf(inner) };
      });
  });
}

const field = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([\t\x20-\x7e\x80-\xff]*?)[ \t]*$/;

/** A body in chunks, of which only the last is empty. */
const chunks = /^(?:[1-9a-f][0-9a-f]*\r\n.*?\r\n)?0+(?:;[^\r\n]*)?\r\n(?:[^\r\n]+\r\n)*\r\n/is;

/** Where the next request would start by the letter of HTTP, or nothing where the letter leaves a doubt. */
function startOfNext(text: string): number | undefined {
  const end = endOfFirst(text);
  // Empty lines before a request are none of it.
  return end === undefined
    ? undefined
    : end + (/^(?:\r\n)*/.exec(text.slice(end))?.[0].length ?? 0);
}

function endOfFirst(text: string): number | undefined {
  const end = text.indexOf("\r\n\r\n");
  const [, ...lines] = text.slice(0, end).split("\r\n");
  const fields = lines.map((line) => field.exec(line));
  if (end < 0 || fields.includes(null) || !text.includes(" HTTP/1.1\r\n")) {
    return undefined;
  }
  const valuesOf = (name: string) =>
    fields.flatMap((it) => (it?.[1]?.toLowerCase() === name ? (it[2] ?? "") : []));
  const [lengths, codings] = [valuesOf("content-length"), valuesOf("transfer-encoding")];
  const start = end + "\r\n\r\n".length;
  if (codings.length > 0) {
    // Whatever was done to a body before, to be told in chunks is done last.
    const isInChunks = lengths.length === 0 && /(?:^|,[ \t]*)chunked$/i.test(codings.join(", "));
    const match = isInChunks ? chunks.exec(text.slice(start)) : null;
    return match ? start + match[0].length : undefined;
  }
  const [length = "0", ...more] = lengths;
  return /^\d{1,9}$/.test(length) && more.length === 0 ? start + Number(length) : undefined;
}

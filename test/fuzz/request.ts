import type { PipelinedInput, RawAnswer } from "./pipeline.js";

export type HttpInput = PipelinedInput;

export type HeaderLines = readonly (readonly [name: string, value: string])[];

/** Where a request must be told from the next one, by these. */
const framing = /^(content-length|transfer-encoding|connection|upgrade|host)$/i;

/** A request of HTTP/1.1 whose end is where it says. Values of headers are bytes, not characters. */
export function request(
  verb: string,
  target: string,
  accepts: (answer: RawAnswer) => boolean,
  headers: HeaderLines,
  body: Buffer = Buffer.alloc(0),
  host = "localhost",
): HttpInput {
  const lines = headers
    .filter(([name]) => !framing.test(name))
    .map(([name, value]) => `${name}: ${value}\r\n`);
  const length = body.length > 0 || verb === "POST" ? `content-length: ${body.length}\r\n` : "";
  const head = `${verb} ${target} HTTP/1.1\r\nhost: ${host}\r\n${lines.join("")}${length}\r\n`;
  return {
    bytes: Buffer.concat([Buffer.from(head, "latin1"), body]),
    isHead: verb === "HEAD",
    accepts,
  };
}

/** A text as the bytes that it is sent as, each as a character; none that would end a header. */
export function asBytes(text: string): string {
  const bytes = Buffer.from(text).filter(
    (byte) => (byte >= 0x20 && byte !== 0x7f) || byte === 0x09,
  );
  return Buffer.from(bytes).toString("latin1");
}

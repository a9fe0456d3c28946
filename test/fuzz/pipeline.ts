import { connect } from "node:net";
import { type FailureLog, fuzzTimeout } from "./harness.js";

export interface RawResponse {
  readonly status: number;
  /** The status line and the headers. */
  readonly head: string;
  readonly body: string;
}

/** A request whose end is unambiguous. */
export interface PipelinedInput {
  readonly bytes: Buffer;
  readonly isHead: boolean;
  /** Whether the response is expected. Checks that apply to all responses are made elsewhere. */
  accepts(response: RawResponse): boolean;
}

export interface PipelineOptions {
  /** The number of pending requests on each connection. */
  readonly depth?: number;
}

export type HeaderList = readonly (readonly [name: string, value: string])[];

/** Headers that determine where a request ends. */
const framingHeaders = /^(content-length|transfer-encoding|connection|upgrade|host)$/i;

/** Builds an HTTP/1.1 request with correct framing. Header values are bytes, not characters. */
export function buildRequest(
  verb: string,
  target: string,
  accepts: (response: RawResponse) => boolean,
  headers: HeaderList,
  body: Buffer = Buffer.alloc(0),
  host = "localhost",
): PipelinedInput {
  const lines = headers
    .filter(([name]) => !framingHeaders.test(name))
    .map(([name, value]) => `${name}: ${value}\r\n`);
  const length = body.length > 0 || verb === "POST" ? `content-length: ${body.length}\r\n` : "";
  const head = `${verb} ${target} HTTP/1.1\r\nhost: ${host}\r\n${lines.join("")}${length}\r\n`;
  return {
    bytes: Buffer.concat([Buffer.from(head, "latin1"), body]),
    isHead: verb === "HEAD",
    accepts,
  };
}

/** Encodes a text as UTF-8 with one character per byte, without bytes that would end a header. */
export function toHeaderBytes(text: string): string {
  const bytes = Buffer.from(text).filter(
    (byte) => (byte >= 0x20 && byte !== 0x7f) || byte === 0x09,
  );
  return Buffer.from(bytes).toString("latin1");
}

const connections = 4;
const endOfHead = Buffer.from("\r\n\r\n");

/**
 * Sends requests on a few connections without waiting for responses, and checks
 * each response. Each request must get exactly one.
 */
export async function pipeline(
  port: number,
  inputs: Iterator<PipelinedInput>,
  check: (input: PipelinedInput, response: RawResponse) => void,
  failures: FailureLog,
  { depth = 50 }: PipelineOptions = {},
): Promise<void> {
  const retryQueue: PipelinedInput[] = [];
  const next = () => retryQueue.pop() ?? (inputs.next().value as PipelinedInput | undefined);

  async function work(): Promise<void> {
    for (let isDone = false; !isDone && !failures.isFull; ) {
      const first = next();
      if (first === undefined) {
        return;
      }
      isDone = await useConnection(port, depth, first, next, retryQueue, check, failures);
    }
  }
  await Promise.all(Array.from({ length: connections }, work));
}

/** Uses one connection until all inputs are sent or the server closes it. Returns whether all are done. */
function useConnection(
  port: number,
  depth: number,
  first: PipelinedInput,
  next: () => PipelinedInput | undefined,
  retryQueue: PipelinedInput[],
  check: (input: PipelinedInput, response: RawResponse) => void,
  failures: FailureLog,
): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: "127.0.0.1", port, noDelay: true });
    const pending: PipelinedInput[] = [first];
    let rest: Buffer = Buffer.alloc(0);
    let isDone = false;
    let received = 0;

    const send = () => {
      const batch: Buffer[] = received === 0 ? [first.bytes] : [];
      while (pending.length < depth && !isDone) {
        const input = next();
        isDone = input === undefined || failures.isFull;
        if (input) {
          pending.push(input);
          batch.push(input.bytes);
        }
      }
      socket.write(Buffer.concat(batch));
    };

    socket.on("connect", send);
    socket.setTimeout(fuzzTimeout, () => {
      failures.add(pending[0]?.bytes.toString("latin1"), "none, and the connection stays open");
      pending.shift();
      socket.destroy();
    });
    socket.on("data", (chunk) => {
      rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
      for (let response = takeResponse(); response; response = takeResponse()) {
        const input = pending.shift() as PipelinedInput;
        received++;
        check(input, response);
      }
      if (pending.length < depth / 2 && !isDone && received > 0) {
        send();
      }
      if (isDone && pending.length === 0) {
        socket.end();
      }
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      if (received === 0 && pending.length > 0) {
        failures.add(
          pending.shift()?.bytes.toString("latin1"),
          "none, and the connection is closed",
        );
      }
      retryQueue.push(...pending.reverse());
      resolve(isDone && pending.length === 0);
    });

    /** Removes the next complete response from the received bytes. Skips 100 Continue. */
    function takeResponse(): RawResponse | undefined {
      const end = rest.indexOf(endOfHead);
      const [input] = pending;
      if (end < 0 || !input) {
        return undefined;
      }
      const head = rest.toString("latin1", 0, end);
      const status = Number(head.slice(9, 12));
      const bodyStart = end + endOfHead.length;
      const length = input.isHead ? 0 : getBodyLength(head, rest, bodyStart);
      if (length === undefined || rest.length < bodyStart + length) {
        return undefined;
      }
      const body = rest.toString("utf8", bodyStart, bodyStart + length);
      rest = rest.subarray(bodyStart + length);
      return status === 100 ? takeResponse() : { status, head, body };
    }
  });
}

/** Returns the length of a body, or undefined if it is incomplete. */
function getBodyLength(head: string, bytes: Buffer, start: number): number | undefined {
  if (!/\r\ntransfer-encoding: chunked/i.test(head)) {
    return Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0);
  }
  // No body in these tests contains this sequence.
  const end = bytes.indexOf("0\r\n\r\n", start);
  return end < 0 ? undefined : end + "0\r\n\r\n".length - start;
}

import { connect } from "node:net";
import { fuzzTimeout } from "./say.js";
import type { Findings } from "./seeded.js";

/** An answer over HTTP/1.1. */
export interface RawAnswer {
  readonly status: number;
  /** The status line and the headers, as they came. */
  readonly head: string;
  readonly body: string;
}

/** A request, byte for byte, that a server can tell from the next one. */
export interface PipelinedInput {
  readonly bytes: Buffer;
  readonly isHead: boolean;
  /** Whether it was answered as it should be; what no answer may be is asked elsewhere. */
  accepts(answer: RawAnswer): boolean;
}

export interface PipelineOptions {
  /** How many requests wait for their answers at a time, on each of the connections. */
  readonly depth?: number;
}

const connections = 4;
const endOfHead = Buffer.from("\r\n\r\n");

/**
 * Sends requests one after the other without waiting for answers, on a few
 * connections, and judges each answer. Each request is answered, once.
 */
export async function pipeline(
  port: number,
  inputs: Iterator<PipelinedInput>,
  judge: (input: PipelinedInput, answer: RawAnswer) => void,
  findings: Findings,
  { depth = 50 }: PipelineOptions = {},
): Promise<void> {
  const again: PipelinedInput[] = [];
  const next = () => again.pop() ?? (inputs.next().value as PipelinedInput | undefined);

  async function work(): Promise<void> {
    for (let isDone = false; !isDone && !findings.isFull; ) {
      const first = next();
      if (first === undefined) {
        return;
      }
      isDone = await converse(port, depth, first, next, again, judge, findings);
    }
  }
  await Promise.all(Array.from({ length: connections }, work));
}

/** Uses one connection until nothing is left, or the server has closed it. */
function converse(
  port: number,
  depth: number,
  first: PipelinedInput,
  next: () => PipelinedInput | undefined,
  again: PipelinedInput[],
  judge: (input: PipelinedInput, answer: RawAnswer) => void,
  findings: Findings,
): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: "127.0.0.1", port, noDelay: true });
    const waiting: PipelinedInput[] = [first];
    let rest: Buffer = Buffer.alloc(0);
    let isDone = false;
    let answered = 0;

    const send = () => {
      const batch: Buffer[] = answered === 0 ? [first.bytes] : [];
      while (waiting.length < depth && !isDone) {
        const input = next();
        isDone = input === undefined || findings.isFull;
        if (input) {
          waiting.push(input);
          batch.push(input.bytes);
        }
      }
      socket.write(Buffer.concat(batch));
    };

    socket.on("connect", send);
    socket.setTimeout(fuzzTimeout, () => {
      findings.add(waiting[0]?.bytes.toString("latin1"), "none, and the connection stays open");
      waiting.shift();
      socket.destroy();
    });
    socket.on("data", (chunk) => {
      rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
      for (let answer = take(); answer; answer = take()) {
        const input = waiting.shift() as PipelinedInput;
        answered++;
        judge(input, answer);
      }
      if (waiting.length < depth / 2 && !isDone && answered > 0) {
        send();
      }
      if (isDone && waiting.length === 0) {
        socket.end();
      }
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      if (answered === 0 && waiting.length > 0) {
        findings.add(
          waiting.shift()?.bytes.toString("latin1"),
          "none, and the connection is closed",
        );
      }
      again.push(...waiting.reverse());
      resolve(isDone && waiting.length === 0);
    });

    /** The next whole answer off the front of what came; those that only promise one are left out. */
    function take(): RawAnswer | undefined {
      const end = rest.indexOf(endOfHead);
      const [input] = waiting;
      if (end < 0 || !input) {
        return undefined;
      }
      const head = rest.toString("latin1", 0, end);
      const status = Number(head.slice(9, 12));
      const bodyStart = end + endOfHead.length;
      const length = input.isHead ? 0 : lengthOf(head, rest, bodyStart);
      if (length === undefined || rest.length < bodyStart + length) {
        return undefined;
      }
      const body = rest.toString("utf8", bodyStart, bodyStart + length);
      rest = rest.subarray(bodyStart + length);
      return status === 100 ? take() : { status, head, body };
    }
  });
}

/** The length of the body of an answer, if that can be told yet. */
function lengthOf(head: string, bytes: Buffer, start: number): number | undefined {
  if (!/\r\ntransfer-encoding: chunked/i.test(head)) {
    return Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0);
  }
  // The last chunk is empty; no body here holds what looks like one.
  const end = bytes.indexOf("0\r\n\r\n", start);
  return end < 0 ? undefined : end + "0\r\n\r\n".length - start;
}

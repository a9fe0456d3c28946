import { expect } from "@jest/globals";
import { forEachConcurrently } from "../support/concurrency.js";
import { type Frame, takeFrames } from "../support/http/http2-wire.js";
import { openRawHttp2 } from "../support/http/raw-connection.js";
import type { FuzzedServer } from "./fuzzed-server.js";
import { type Http2Input, http2Inputs } from "./http2-inputs.js";
import { statusIn } from "./http2-status.js";
import { connections, fuzzTimeout, say } from "./say.js";
import { createFindings, seeded } from "./seeded.js";

interface Http2Answer {
  readonly bytes: Buffer;
  readonly frames: readonly Frame[];
  readonly isLate: boolean;
}

/** Sends frames, and answers with all that comes back until the connection is closed. */
async function converse(port: number, { frames: sent, isGood }: Http2Input): Promise<Http2Answer> {
  const connection = openRawHttp2(port);
  const { socket } = connection;
  const frames: Frame[] = [];
  let rest = Buffer.alloc(0);
  const hear = (chunk: Buffer) => {
    rest = takeFrames(Buffer.concat([rest, chunk]), frames);
    const { type, isLast } = frames.at(-1) ?? {};
    if (type === "GOAWAY") {
      // The server is done with the connection, and waits for its caller to close it.
      socket.destroy();
    } else if (type === "RST_STREAM" || (type === "HEADERS" && isLast)) {
      socket.end();
    }
  };
  const isLate = await say(connection, sent, { hear, ...(isGood && { pause: fuzzTimeout }) });
  return { bytes: connection.received(), frames, isLate };
}

function isAsItShouldBe(
  { isGood }: Http2Input,
  { bytes, frames, isLate }: Http2Answer,
  mark: string,
): boolean {
  // Later ones may be told by what was said before.
  const head = frames.find(({ type }) => type === "HEADERS");
  const status = head && statusIn(head.payload);
  return (
    !isLate &&
    (status === undefined || status < 500) &&
    (!isGood || status === 200) &&
    !bytes.includes(mark)
  );
}

/** Sends frames on so many connections, and expects that each is answered, or ends its stream or connection, and harms no other. */
export async function sendFrames(server: FuzzedServer, count: number): Promise<void> {
  const findings = createFindings();
  const inputs = seeded(http2Inputs(server.attacker.management), count);
  let served = 0;
  const send = async (input: Http2Input) => {
    const answer = await converse(server.port, input);
    served += input.isGood ? 1 : 0;
    if (!isAsItShouldBe(input, answer, server.victim.mark)) {
      const { what, frames } = input;
      findings.add({ what, frames: frames.toString("hex") }, answer.bytes.toString("latin1"));
    }
  };
  await forEachConcurrently(connections, inputs, send, () => findings.isFull);
  findings.expectNone();
  expect(served).toBeGreaterThan(0);
}

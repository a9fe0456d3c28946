import { expect } from "@jest/globals";
import { forEachConcurrently } from "../support/concurrency.js";
import { parseResponses } from "../support/http/http.js";
import { type Frame, takeFrames } from "../support/http/http2-wire.js";
import {
  openRaw,
  openRawHttp2,
  type RawConnection,
  staysOpen,
} from "../support/http/raw-connection.js";
import { type FramedInput, framedInputs } from "./framing-inputs.js";
import type { FuzzedServer } from "./fuzzed-server.js";
import { createFailureLog, fuzzTimeout, generate } from "./harness.js";
import { type Http2Input, http2Inputs } from "./http2-inputs.js";
import { readStatus } from "./http2-status.js";

/** The number of concurrent connections. */
const connections = 24;

/** How long to wait for more of a response before the client closes the connection, in milliseconds. */
const defaultPause = 40;

interface SendOptions {
  /** Called with received data and the timer that closes the connection. */
  onData(chunk: Buffer, closeTimer: NodeJS.Timeout): void;
  readonly pause?: number;
}

/** Sends bytes, and waits until the connection is closed. Returns whether that timed out. */
async function sendUntilClosed(
  connection: RawConnection,
  bytes: Uint8Array,
  { onData, pause = defaultPause }: SendOptions,
): Promise<boolean> {
  const { socket, write } = connection;
  const closeTimer = setTimeout(() => socket.end(), pause);
  socket.on("data", (chunk) => onData(chunk, closeTimer));
  write(bytes);
  const isTimeout = await staysOpen(connection, fuzzTimeout);
  clearTimeout(closeTimer);
  return isTimeout;
}

interface FramingResponse {
  readonly text: string;
  readonly isTimeout: boolean;
}

async function sendFraming(port: number, bytes: string): Promise<FramingResponse> {
  const connection = openRaw(port);
  const isTimeout = await sendUntilClosed(connection, Buffer.from(bytes, "latin1"), {
    onData: (_chunk, closeTimer) => closeTimer.refresh(),
  });
  return { text: connection.received().toString("latin1"), isTimeout };
}

function isExpectedFraming(
  { holdsTwo }: FramedInput,
  { text, isTimeout }: FramingResponse,
): boolean {
  const responses = parseResponses(text);
  const successes = responses.filter(({ status }) => status === 200);
  return (
    !isTimeout &&
    responses.every(({ status }) => status < 500) &&
    successes.length <= (holdsTwo ? 1 : 0)
  );
}

/** Sends requests with ambiguous framing, and expects that none smuggles in another request. */
export async function fuzzFraming(server: FuzzedServer, count: number): Promise<void> {
  const failures = createFailureLog();
  const inputs = generate(framedInputs(server.attacker.management), count);
  const send = async (input: FramedInput) => {
    const response = await sendFraming(server.port, input.text);
    if (!isExpectedFraming(input, response)) {
      failures.add(input, response);
    }
  };
  await forEachConcurrently(connections, inputs, send, () => failures.isFull);
  failures.expectEmpty();
}

interface Http2Response {
  readonly bytes: Buffer;
  readonly frames: readonly Frame[];
  readonly isTimeout: boolean;
}

async function sendHttp2(
  port: number,
  { frames: sent, isValid }: Http2Input,
): Promise<Http2Response> {
  const connection = openRawHttp2(port);
  const { socket } = connection;
  const frames: Frame[] = [];
  let rest = Buffer.alloc(0);
  const onData = (chunk: Buffer) => {
    rest = takeFrames(Buffer.concat([rest, chunk]), frames);
    const { type, isLast } = frames.at(-1) ?? {};
    if (type === "GOAWAY") {
      // The server waits for the client to close the connection.
      socket.destroy();
    } else if (type === "RST_STREAM" || (type === "HEADERS" && isLast)) {
      socket.end();
    }
  };
  const isTimeout = await sendUntilClosed(connection, sent, {
    onData,
    ...(isValid && { pause: fuzzTimeout }),
  });
  return { bytes: connection.received(), frames, isTimeout };
}

function isExpectedHttp2(
  { isValid }: Http2Input,
  { bytes, frames, isTimeout }: Http2Response,
  victimMark: string,
): boolean {
  // Later headers may refer to HPACK's dynamic table.
  const head = frames.find(({ type }) => type === "HEADERS");
  const status = head && readStatus(head.payload);
  return (
    !isTimeout &&
    (status === undefined || status < 500) &&
    (!isValid || status === 200) &&
    !bytes.includes(victimMark)
  );
}

/** Sends frames on separate connections, and expects a response or the end of the stream or connection. */
export async function fuzzHttp2(server: FuzzedServer, count: number): Promise<void> {
  const failures = createFailureLog();
  const inputs = generate(http2Inputs(server.attacker.management), count);
  let validCount = 0;
  const send = async (input: Http2Input) => {
    const response = await sendHttp2(server.port, input);
    validCount += input.isValid ? 1 : 0;
    if (!isExpectedHttp2(input, response, server.victim.mark)) {
      const { description, frames } = input;
      failures.add(
        { description, frames: frames.toString("hex") },
        response.bytes.toString("latin1"),
      );
    }
  };
  await forEachConcurrently(connections, inputs, send, () => failures.isFull);
  failures.expectEmpty();
  expect(validCount).toBeGreaterThan(0);
}

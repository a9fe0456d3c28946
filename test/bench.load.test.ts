import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { createAnswerReader } from "../bench/load/answer-reader.js";
import { createFrameReader, grpcFrame } from "../bench/load/grpc.js";
import { memoryIn } from "../bench/processes.js";

const withLength = "HTTP/1.1 201 Created\r\nContent-Length: 5\r\n\r\nhello";
const withoutBody = "HTTP/1.1 204 No Content\r\ndate: now\r\n\r\n";
const inChunks = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";

/** A text as bytes, cut in two at a place. */
function cut(text: string, place: number): Buffer[] {
  const bytes = Buffer.from(text);
  return [bytes.subarray(0, place), bytes.subarray(place)].filter(({ length }) => length > 0);
}

describe("the load drivers of the benchmark", () => {
  it.each([
    ["with a length", withLength, 201, "hello"],
    ["without a body", withoutBody, 204, ""],
    ["in chunks", inChunks, 200, "5\r\nhello\r\n0\r\n\r\n"],
  ])("read an answer %s, wherever it is cut", (_name, text, status, body) => {
    for (let place = 1; place <= text.length; place++) {
      const reader = createAnswerReader();
      const answers = cut(text, place).map((part) => reader.add(part));
      expect(answers.slice(0, -1)).toEqual(answers.slice(0, -1).map(() => undefined));
      expect(answers.at(-1)).toEqual({ status, body: Buffer.from(body) });
    }
  });

  it("refuse an answer whose end cannot be seen", () => {
    const answer = Buffer.from("HTTP/1.1 200 OK\r\n\r\nhello");
    expect(() => createAnswerReader().add(answer)).toThrow("an answer without a length");
  });

  it("read the messages of a stream, however they are cut", () => {
    const messages = fc.array(fc.uint8Array({ maxLength: 20 }), { minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(messages, fc.integer({ min: 1, max: 9 }), (sent, size) => {
        const bytes = Buffer.concat(sent.map(grpcFrame));
        const received: Buffer[] = [];
        const read = createFrameReader((message) => received.push(Buffer.from(message)));
        for (let at = 0; at < bytes.length; at += size) {
          read(bytes.subarray(at, at + size));
        }
        expect(received).toEqual(sent.map((message) => Buffer.from(message)));
      }),
    );
  });
});

describe("the memory that the benchmark sees", () => {
  const smaps = [
    "00400000-00500000 r-xp 00000000 fe:00 1 /usr/bin/node",
    "Size:               4096 kB",
    "Rss:                2048 kB",
    "7f0000000000-7f1000000000 r--s 00000000 fe:00 2 /tmp/store/data.mdb",
    "Rss:               10240 kB",
    "7f2000000000-7f2000100000 rw-p 00000000 00:00 0",
    "Rss:                1024 kB",
  ].join("\n");

  it("is told with and without the data that is mapped into a process", () => {
    expect(memoryIn(smaps, "/tmp/store")).toEqual({ whole: 13, own: 3 });
    expect(memoryIn(smaps, undefined)).toEqual({ whole: 13, own: 13 });
  });
});

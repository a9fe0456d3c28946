import fc from "fast-check";
import {
  endHeaders,
  endStream,
  type Fields,
  frame,
  frameType,
  hpack,
} from "../support/http/http2-frames.js";
import { envelope } from "../support/http/raw-grpc.js";
import { mostly } from "./mostly.js";

/** What is sent on a connection of HTTP/2 behind its preface. */
export interface Http2Input {
  readonly what: string;
  readonly frames: Buffer;
  /** Whether it is a good call, and must be answered. */
  readonly isGood: boolean;
}

/** Fields that a request must not have, or not so. */
const oddFields: Fields = [
  ["SVC-API-KEY", "x"],
  ["Content-Type", "application/grpc"],
  ["connection", "close"],
  ["transfer-encoding", "chunked"],
  ["te", "gzip"],
  ["upgrade", "h2c"],
  ["content-length", "0"],
  ["content-length", "5"],
  ["content-length", "6"],
  ["content-length", "-1"],
  ["host", "evil.example"],
  [":path", "/whoami"],
  [":method", "GET"],
  [":status", "200"],
  [":protocol", "websocket"],
  [":odd", "x"],
  ["", "x"],
  [":", "x"],
  ["a b", "x"],
  ["a\r\nsvc-api-key", "x"],
  ["a\u0000", "x"],
  ["x", "a\u0000b"],
  ["x", "a\r\nsvc-api-key: b"],
  ["x", "\u0001\u007f\u00ff"],
  ["__proto__", "x"],
  ["constructor", "x"],
  ["cookie", "a=b"],
  ["if-match", '"1"'],
  ["if-match", '"2"'],
  ["idempotency-key", "a"],
  ["grpc-timeout", "1S"],
  ["grpc-timeout", "x"],
  ["x-bin", "!!!"],
  ["x", "a".repeat(2_000)],
];

/** Calls of a read over frames made by hand, of which something is not as it should be. */
export function http2Inputs(key: string): fc.Arbitrary<Http2Input> {
  const good: Fields = [
    [":method", "POST"],
    [":scheme", "http"],
    [":path", "/latchkey.v1.AccessService/WhoAmI"],
    [":authority", "localhost"],
    ["content-type", "application/grpc"],
    ["te", "trailers"],
    ["svc-api-key", key],
  ];
  const fields = fc.oneof(
    fc.constant(good),
    fc
      .tuple(fc.constantFrom(...oddFields), fc.nat(good.length))
      .map(([odd, at]) => good.toSpliced(at, 0, odd)),
    fc
      .tuple(fc.constantFrom(...good), fc.nat(good.length))
      .map(([it, at]) => good.toSpliced(at, 0, it)),
    fc.nat(good.length - 1).map((at) => good.toSpliced(at, 1)),
    fc
      .tuple(
        fc.nat(good.length - 1),
        fc.constantFrom("", "*", "/", "x", "\u0000", "é", "//a", "/%"),
      )
      .map(([at, value]) => good.with(at, [good[at]?.[0] ?? "", value])),
    fc.shuffledSubarray([...good], { minLength: good.length }),
  );
  const block = fc.tuple(fields, mostly(Buffer.alloc(0), fc.constantFrom(...blocks)));
  return fc
    .tuple(
      block,
      mostly(1, fc.constantFrom(0, 2, 3, 0x7fff_ffff)),
      fc.constantFrom(...bodies),
      extras,
    )
    .map(([[fields, broken], stream, body, extra]) => {
      const head = Buffer.concat([broken, hpack(fields)]);
      const frames = Buffer.concat([
        extra,
        frame(frameType.headers, endHeaders, stream, head),
        body.bytes(stream),
      ]);
      const isGood =
        fields === good && broken.length === 0 && stream === 1 && body.isGood && extra.length === 0;
      return { what: JSON.stringify({ fields, stream, body: body.what }), frames, isGood };
    });
}

/** Parts of a block of headers that say nothing, or nothing good. */
const blocks = [
  Buffer.of(0x80),
  Buffer.of(0xff, 0xff, 0xff, 0xff, 0x0f),
  Buffer.of(0x3f, 0xe1, 0xff, 0x03),
  Buffer.of(0x20),
  Buffer.of(0x00, 0x81, 0xff, 0x01, 0x78),
  Buffer.of(0x00, 0x7f, 0xff, 0xff, 0xff, 0x7f),
  Buffer.of(0x82),
  Buffer.of(0xbe),
];

/** What follows the headers. */
const bodies: readonly { what: string; isGood: boolean; bytes(stream: number): Buffer }[] = [
  {
    what: "a message",
    isGood: true,
    bytes: (stream) => frame(frameType.data, endStream, stream, envelope("")),
  },
  { what: "nothing", isGood: false, bytes: () => Buffer.alloc(0) },
  {
    what: "half of a message",
    isGood: false,
    bytes: (stream) => frame(frameType.data, endStream, stream, Buffer.alloc(3)),
  },
  {
    what: "too much padding",
    isGood: false,
    bytes: (stream) => frame(frameType.data, endStream | 8, stream, Buffer.of(255, 0, 0)),
  },
  {
    what: "trailers",
    isGood: false,
    bytes: (stream) =>
      frame(frameType.headers, endHeaders | endStream, stream, hpack([["svc-api-key", "x"]])),
  },
  {
    what: "trailers with a path",
    isGood: false,
    bytes: (stream) =>
      frame(frameType.headers, endHeaders | endStream, stream, hpack([[":path", "/"]])),
  },
  {
    what: "headers that go on",
    isGood: false,
    bytes: (stream) => frame(frameType.continuation, endHeaders, stream, hpack([["a", "b"]])),
  },
  {
    what: "data after the end",
    isGood: false,
    bytes: (stream) =>
      Buffer.concat([
        frame(frameType.data, endStream, stream, envelope("")),
        frame(frameType.data, endStream, stream, envelope("")),
      ]),
  },
];

/** A frame of any type before the headers, or none. */
const extras = mostly(
  Buffer.alloc(0),
  fc
    .tuple(fc.nat(12), fc.nat(255), fc.constantFrom(0, 1, 2, 3), fc.uint8Array({ maxLength: 12 }))
    .map(([type, flags, stream, payload]) => frame(type, flags, stream, Buffer.from(payload))),
);

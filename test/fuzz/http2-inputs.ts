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
import { mostlyValid } from "./arbitraries.js";

/** Frames to send after the HTTP/2 preface. */
export interface Http2Input {
  readonly description: string;
  readonly frames: Buffer;
  /** Whether it is a valid call that must succeed. */
  readonly isValid: boolean;
}

/** Fields that are invalid or unexpected in a request. */
const invalidFields: Fields = [
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
  [":invalid", "x"],
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

/** Reads over hand-made frames, most of them invalid. */
export function http2Inputs(key: string): fc.Arbitrary<Http2Input> {
  const valid: Fields = [
    [":method", "POST"],
    [":scheme", "http"],
    [":path", "/latchkey.v1.AccessService/WhoAmI"],
    [":authority", "localhost"],
    ["content-type", "application/grpc"],
    ["te", "trailers"],
    ["svc-api-key", key],
  ];
  const fields = fc.oneof(
    fc.constant(valid),
    fc
      .tuple(fc.constantFrom(...invalidFields), fc.nat(valid.length))
      .map(([invalid, at]) => valid.toSpliced(at, 0, invalid)),
    fc
      .tuple(fc.constantFrom(...valid), fc.nat(valid.length))
      .map(([it, at]) => valid.toSpliced(at, 0, it)),
    fc.nat(valid.length - 1).map((at) => valid.toSpliced(at, 1)),
    fc
      .tuple(
        fc.nat(valid.length - 1),
        fc.constantFrom("", "*", "/", "x", "\u0000", "é", "//a", "/%"),
      )
      .map(([at, value]) => valid.with(at, [valid[at]?.[0] ?? "", value])),
    fc.shuffledSubarray([...valid], { minLength: valid.length }),
  );
  const block = fc.tuple(fields, mostlyValid(Buffer.alloc(0), fc.constantFrom(...blockPrefixes)));
  return fc
    .tuple(
      block,
      mostlyValid(1, fc.constantFrom(0, 2, 3, 0x7fff_ffff)),
      fc.constantFrom(...bodies),
      extras,
    )
    .map(([[fields, prefix], stream, body, extra]) => {
      const head = Buffer.concat([prefix, hpack(fields)]);
      const frames = Buffer.concat([
        extra,
        frame(frameType.headers, endHeaders, stream, head),
        body.bytes(stream),
      ]);
      const isValid =
        fields === valid &&
        prefix.length === 0 &&
        stream === 1 &&
        body.isValid &&
        extra.length === 0;
      const description = JSON.stringify({ fields, stream, body: body.name });
      return { description, frames, isValid };
    });
}

/** Empty or invalid starts of a header block. */
const blockPrefixes = [
  Buffer.of(0x80),
  Buffer.of(0xff, 0xff, 0xff, 0xff, 0x0f),
  Buffer.of(0x3f, 0xe1, 0xff, 0x03),
  Buffer.of(0x20),
  Buffer.of(0x00, 0x81, 0xff, 0x01, 0x78),
  Buffer.of(0x00, 0x7f, 0xff, 0xff, 0xff, 0x7f),
  Buffer.of(0x82),
  Buffer.of(0xbe),
];

/** Frames after the headers. */
const bodies: readonly { name: string; isValid: boolean; bytes(stream: number): Buffer }[] = [
  {
    name: "a message",
    isValid: true,
    bytes: (stream) => frame(frameType.data, endStream, stream, envelope("")),
  },
  { name: "nothing", isValid: false, bytes: () => Buffer.alloc(0) },
  {
    name: "half of a message",
    isValid: false,
    bytes: (stream) => frame(frameType.data, endStream, stream, Buffer.alloc(3)),
  },
  {
    name: "too much padding",
    isValid: false,
    bytes: (stream) => frame(frameType.data, endStream | 8, stream, Buffer.of(255, 0, 0)),
  },
  {
    name: "trailers",
    isValid: false,
    bytes: (stream) =>
      frame(frameType.headers, endHeaders | endStream, stream, hpack([["svc-api-key", "x"]])),
  },
  {
    name: "trailers with a path",
    isValid: false,
    bytes: (stream) =>
      frame(frameType.headers, endHeaders | endStream, stream, hpack([[":path", "/"]])),
  },
  {
    name: "a continuation after the headers",
    isValid: false,
    bytes: (stream) => frame(frameType.continuation, endHeaders, stream, hpack([["a", "b"]])),
  },
  {
    name: "data after the end",
    isValid: false,
    bytes: (stream) =>
      Buffer.concat([
        frame(frameType.data, endStream, stream, envelope("")),
        frame(frameType.data, endStream, stream, envelope("")),
      ]),
  },
];

/** Mostly no frame before the headers, else one of any type. */
const extras = mostlyValid(
  Buffer.alloc(0),
  fc
    .tuple(fc.nat(12), fc.nat(255), fc.constantFrom(0, 1, 2, 3), fc.uint8Array({ maxLength: 12 }))
    .map(([type, flags, stream, payload]) => frame(type, flags, stream, Buffer.from(payload))),
);

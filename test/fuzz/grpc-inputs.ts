import { type DescMethod, type MessageShape, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { accessOf, services } from "../../src/contract/methods.js";
import { sampleOf } from "../middleware/authorization/samples.js";
import { rpcPath } from "../support/api/rpc-path.js";
import { envelope } from "../support/http/raw-grpc.js";
import { mostlyValid } from "./arbitraries.js";
import type { FuzzFixtures } from "./fixtures.js";

export interface GrpcInput {
  readonly method: DescMethod;
  readonly headers: Headers;
  readonly body: Buffer;
  /** Whether it has one valid key in a header that the method reads. */
  readonly hasKey: boolean;
}

/** Changes a message at an offset with a byte. */
type Mutation = (message: Buffer, at: number, byte: number) => Buffer;

const insert = (message: Buffer, at: number, ...bytes: number[]) =>
  Buffer.concat([message.subarray(0, at), Buffer.from(bytes), message.subarray(at)]);

const mutations: readonly Mutation[] = [
  (message) => message,
  (message, at) => message.subarray(0, at),
  (message, at) => message.subarray(at),
  (message, at, byte) => {
    const copy = Buffer.from(message);
    copy[at] = byte;
    return copy;
  },
  (message, at, byte) => insert(message, at, byte),
  (message) => Buffer.concat([message, message]),
  // An unknown field of each wire type, the last ones being groups.
  (message, _at, byte) => insert(message, 0, 0xf8, 0x07, byte),
  (message, _at, byte) => insert(message, 0, 0xf9, 0x07, ...Array(8).fill(byte)),
  (message, _at, byte) => insert(message, 0, 0xfa, 0x07, 1, byte),
  (message, _at, byte) => insert(message, 0, 0xfd, 0x07, ...Array(4).fill(byte)),
  (message) => insert(message, 0, 0xfb, 0x07, 0xfc, 0x07),
  (message) => insert(message, 0, 0xfb, 0x07),
  (message) => insert(message, 0, 0xfc, 0x07),
  (message) => insert(message, 0, ...Array(200).fill(0x0b)),
  (message) => insert(message, 0, 0x00),
  (message) => insert(message, message.length, 0x80),
  (message) => insert(message, message.length, ...Array(11).fill(0x80), 0x01),
  // The lowest field numbers with another wire type, invalid UTF-8 or a wrong length.
  (message, at, byte) => insert(message, message.length, ((at % 8) + 1) * 8 + (byte % 8), byte),
  (message, at) => insert(message, message.length, ((at % 8) + 1) * 8 + 2, 2, 0xc3, 0x28),
  (message, at) => insert(message, message.length, ((at % 8) + 1) * 8 + 2, 3, 0xed, 0xa0, 0x80),
  (message, at) => insert(message, message.length, ((at % 8) + 1) * 8 + 2, 0xff, 0xff, 0xff, 0x7f),
  (message, at) => insert(message, message.length, ((at % 8) + 1) * 8 + 2, 1, 0),
  (_message, at, byte) => Buffer.alloc(at, byte),
];

const timeouts = [
  ...[
    "1n",
    "0n",
    "30m",
    "1S",
    "99999999H",
    "999999999S",
    "-1S",
    "1",
    "S",
    "1x",
    "1.5S",
    "1e3m",
    "",
  ],
  ...[" 1S", "1S ", "１S", "NaN", "Infinity", "0x1S", "1S, 2S"],
];

/** Any header may be repeated. */
type Headers = Readonly<Record<string, string | string[] | undefined>>;

/** Invalid headers. Those with a valid key in the correct header may be accepted. */
function invalidHeaders({ attacker, victim }: FuzzFixtures): Headers[] {
  const { private: key } = attacker;
  const name = "svc-api-key";
  return [
    ...[
      [key, key],
      [key, "junk"],
      ["junk", key],
      [`${key}, ${key}`],
      ["", key],
      [victim.nonce],
    ].map((keys) => ({ [name]: keys as string[] })),
    ...["", "junk", `${key} ,`, `Bearer ${key}`, key.toUpperCase(), `${key}.`].map((text) => ({
      [name]: text,
    })),
    { [name]: undefined, authorization: `Bearer ${key}` },
    { [name]: undefined, "svc-api-key-bin": Buffer.from(key).toString("base64") },
    { [name]: undefined, cookie: `${name}=${key}` },
    ...timeouts.flatMap((time) => [{ "grpc-timeout": time }, { "connect-timeout-ms": time }]),
    { te: undefined },
    ...[
      ...["application/grpc+proto", "application/grpc+json", "application/grpc+thrift"],
      ...[
        "application/grpc;charset=utf-8",
        "APPLICATION/GRPC",
        "application/grpc+",
        "application/grpcx",
      ],
      ...["application/grpc-web", "application/grpc-web+proto", "application/grpc-web-text"],
      ...["application/proto", "application/json", "application/connect+proto", "text/html", ""],
    ].map((type) => ({ "content-type": type })),
    ...["gzip", "br", "identity", "deflate", "", "gzip, gzip", "GZIP", "__proto__"].flatMap(
      (it) => [{ "grpc-encoding": it }, { "content-encoding": it }, { "grpc-accept-encoding": it }],
    ),
    ...["!!!!", "AA=A", "=", "%%%", "\u00ff", "a".repeat(3_000)].flatMap((it) => [
      { "x-bin": it },
      { "grpc-status-details-bin": it },
      { "grpc-trace-bin": [it, it] },
      { "grpc-message": it },
      { "if-match": it },
      { "idempotency-key": [it, it] },
      { "x-request-id": it },
      { traceparent: it },
    ]),
    ...["EVIL.EXAMPLE.", "a@b", "[::1", "a:99999", "xn--"].map((host) => ({
      ":authority": host,
    })),
    ...["GET", "PUT", "DELETE", "OPTIONS", "HEAD", "FOO"].map((verb) => ({ ":method": verb })),
    ...["ftp", "https", "javascript"].map((scheme) => ({ ":scheme": scheme })),
    ...["constructor", "tostring", "$ne", "x-http-method-override", "host"].map((it) => ({
      [it]: "PUT",
    })),
  ];
}

function hasKey(method: DescMethod, headers: Headers, key: string): boolean {
  const { "svc-api-key": apiKey, authorization } = headers;
  return apiKey === undefined && accessOf(method).authorizationHeader
    ? authorization === `Bearer ${key}`
    : apiKey === key;
}

const flags = [1, 2, 3, 0x80, 0x81, 0xff];
const wrongLengths = [0, 1, 5, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff];

/** Calls for the victim's data with invalid messages, frames or headers. */
export function grpcInputs(fixtures: FuzzFixtures): fc.Arbitrary<GrpcInput> {
  // Methods that need no key succeed with any.
  const methods = services
    .flatMap((service) => service.methods)
    .filter((method) => !accessOf(method).unauthenticated);
  const messages = methods.map((method) => {
    const message = sampleOf(method, fixtures.victim) as MessageShape<typeof method.input>;
    return Buffer.from(toBinary(method.input, message));
  });
  const offset = fc.nat(1_000);
  const anyMethod = fc.nat(methods.length - 1);
  const message = (index: number) =>
    fc
      .tuple(mostlyValid(index, anyMethod), fc.constantFrom(...mutations), offset, fc.nat(255))
      .map(([of, mutate, at, byte]) => {
        const valid = messages[of] as Buffer;
        return mutate(valid, at % (valid.length + 1), byte);
      });
  const frame = (index: number) =>
    fc
      .tuple(
        message(index),
        mostlyValid(0, fc.constantFrom(...flags)),
        mostlyValid(-1, fc.constantFrom(...wrongLengths)),
      )
      .map(([bytes, flag, length]) => envelope(bytes, flag, length < 0 ? undefined : length));
  const body = (index: number) =>
    fc
      .tuple(
        mostlyValid(1, fc.constantFrom(0, 2, 3)).chain((length) =>
          fc.array(frame(index), { minLength: length, maxLength: length }),
        ),
        mostlyValid(0, fc.integer({ min: 1, max: 6 })),
      )
      .map(([frames, rest]) => Buffer.concat([...frames, Buffer.alloc(rest)]));
  const { private: key } = fixtures.attacker;
  const extraHeaders = mostlyValid({}, fc.constantFrom(...invalidHeaders(fixtures)));
  return anyMethod.chain((index) =>
    fc.tuple(body(index), extraHeaders).map(([body, extra]) => {
      const method = methods[index] as DescMethod;
      const headers = {
        ":method": "POST",
        ":path": rpcPath(method),
        "content-type": "application/grpc",
        te: "trailers",
        "svc-api-key": key,
        ...extra,
      };
      return { method, headers, body, hasKey: hasKey(method, headers, key) };
    }),
  );
}

import { type DescMethod, type MessageShape, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { services } from "../../src/contract/methods.js";
import { sampleOf } from "../middleware/authorization/samples.js";
import { envelope } from "../support/http/raw-grpc.js";
import { mostly } from "./mostly.js";
import type { FuzzWorld } from "./world.js";

/** A call of gRPC, byte for byte. */
export interface GrpcInput {
  readonly method: DescMethod;
  readonly headers: Headers;
  readonly body: Buffer;
  /** Whether it has one good key in one right header. */
  readonly hasKey: boolean;
}

/** How a message can be spoiled, at a place in it, with a byte. */
type Spoil = (message: Buffer, at: number, byte: number) => Buffer;

const insert = (message: Buffer, at: number, ...bytes: number[]) =>
  Buffer.concat([message.subarray(0, at), Buffer.from(bytes), message.subarray(at)]);

const spoils: readonly Spoil[] = [
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
  // A field that nobody knows, of each wire type, the last ones being groups.
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
  // The fields of lowest number, in another wire type, with text that is none, or a length that lies.
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

/** Any header may be there several times, also those that should not. */
type Headers = Readonly<Record<string, string | string[] | undefined>>;

/** Headers that are not as they should be. A key in one of them counts. */
function oddHeaders({ attacker, victim }: FuzzWorld): Headers[] {
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

const flags = [1, 2, 3, 0x80, 0x81, 0xff];
const lies = [0, 1, 5, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff];

/** Calls with messages, frames or headers that are not as they should be, aimed at the victim. */
export function grpcCalls(world: FuzzWorld): fc.Arbitrary<GrpcInput> {
  const methods = services.flatMap((service) => service.methods);
  const messages = methods.map((method) => {
    const message = sampleOf(method, world.victim) as MessageShape<typeof method.input>;
    return Buffer.from(toBinary(method.input, message));
  });
  const place = fc.nat(1_000);
  const anyMethod = fc.nat(methods.length - 1);
  const message = (index: number) =>
    fc
      .tuple(mostly(index, anyMethod), fc.constantFrom(...spoils), place, fc.nat(255))
      .map(([of, spoil, at, byte]) => {
        const good = messages[of] as Buffer;
        return spoil(good, at % (good.length + 1), byte);
      });
  const frame = (index: number) =>
    fc
      .tuple(
        message(index),
        mostly(0, fc.constantFrom(...flags)),
        mostly(-1, fc.constantFrom(...lies)),
      )
      .map(([bytes, flag, lie]) => envelope(bytes, flag, lie < 0 ? undefined : lie));
  const body = (index: number) =>
    fc
      .tuple(
        mostly(1, fc.constantFrom(0, 2, 3)).chain((length) =>
          fc.array(frame(index), { minLength: length, maxLength: length }),
        ),
        mostly(0, fc.integer({ min: 1, max: 6 })),
      )
      .map(([frames, rest]) => Buffer.concat([...frames, Buffer.alloc(rest)]));
  const { private: key } = world.attacker;
  const more = mostly({}, fc.constantFrom(...oddHeaders(world)));
  return anyMethod.chain((index) =>
    fc.tuple(body(index), more).map(([body, odd]) => {
      const method = methods[index] as DescMethod;
      const headers = {
        ":method": "POST",
        ":path": `/${method.parent.typeName}/${method.name}`,
        "content-type": "application/grpc",
        te: "trailers",
        "svc-api-key": key,
        ...odd,
      };
      return { method, headers, body, hasKey: headers["svc-api-key"] === key };
    }),
  );
}

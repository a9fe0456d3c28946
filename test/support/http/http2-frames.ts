/** HTTP/2 frames, encoded here so that they can violate the protocol. */
export const frameType = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;

export const endStream = 1;
export const endHeaders = 4;

const magic = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

export function frame(
  type: number,
  flags: number,
  stream: number,
  payload: Uint8Array = new Uint8Array(),
) {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

export function settings(...pairs: [id: number, value: number][]): Buffer {
  const payload = Buffer.alloc(pairs.length * 6);
  for (const [at, [id, value]] of pairs.entries()) {
    payload.writeUInt16BE(id, at * 6);
    payload.writeUInt32BE(value, at * 6 + 2);
  }
  return frame(frameType.settings, 0, 0, payload);
}

/** The connection preface of a client, including its settings. */
export function preface(...pairs: [id: number, value: number][]): Buffer {
  return Buffer.concat([Buffer.from(magic), settings(...pairs)]);
}

/** Header fields in order. Names may repeat. */
export type Fields = readonly (readonly [name: string, value: string])[];

/** Encodes fields as HPACK literals, without indexing or Huffman coding. */
export function hpack(fields: Fields): Buffer {
  return Buffer.concat(
    fields.flatMap(([name, value]) => [Buffer.of(0), encodeString(name), encodeString(value)]),
  );
}

function encodeString(characters: string): Buffer {
  const bytes = Buffer.from(characters, "latin1");
  return Buffer.concat([encodeInteger(bytes.length), bytes]);
}

/** An HPACK integer with a 7-bit prefix. */
function encodeInteger(length: number): Buffer {
  if (length < 127) {
    return Buffer.of(length);
  }
  const bytes = [127];
  let rest = length - 127;
  for (; rest >= 128; rest >>= 7) {
    bytes.push((rest & 127) | 128);
  }
  return Buffer.of(...bytes, rest);
}

export function request(
  path: string,
  headers: Readonly<Record<string, string>> = {},
  method = "GET",
) {
  return hpack([
    [":method", method],
    [":scheme", "http"],
    [":path", path],
    [":authority", "a"],
    ...Object.entries(headers),
  ]);
}

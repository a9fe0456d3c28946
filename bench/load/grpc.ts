/** The headers that make a request of HTTP/2 a call of gRPC. */
export const grpcHeaders = { "content-type": "application/grpc", te: "trailers" } as const;

const prefixSize = 5;

/** A message with what gRPC puts before it: that it is not compressed, and its length. */
export function grpcFrame(message: string | Uint8Array): Buffer {
  const bytes = Buffer.from(message as string);
  const prefix = Buffer.alloc(prefixSize);
  prefix.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([prefix, bytes]);
}

/** Takes what a stream receives apart into messages. */
export function createFrameReader(onMessage: (message: Buffer) => void): (part: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0);
  return (part) => {
    let bytes = rest.length > 0 ? Buffer.concat([rest, part]) : part;
    while (bytes.length >= prefixSize) {
      const end = prefixSize + bytes.readUInt32BE(1);
      if (bytes.length < end) {
        break;
      }
      onMessage(bytes.subarray(prefixSize, end));
      bytes = bytes.subarray(end);
    }
    rest = bytes;
  };
}

import type { DescMethod } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { createBinaryDecoder } from "./codec/binary-decoder.js";
import { createBinaryEncoder } from "./codec/binary-encoder.js";
import { createConnectJsonDecoder } from "./codec/connect-json-decoder.js";
import { createConnectJsonEncoder } from "./codec/connect-json-encoder.js";
import type { JsonOptions } from "./json-options.js";
import type { Codec } from "./protocols/protocol.js";

export type Codecs = Readonly<Record<"binary" | "json", Codec>>;

/** Creates what reads the requests of a method and writes its answers, in either format. */
export function createCodecs({ input, output }: DescMethod, jsonOptions: JsonOptions): Codecs {
  const decodeBinary = createBinaryDecoder(input);
  const decodeJson = createConnectJsonDecoder(input, jsonOptions);
  return {
    binary: {
      decode: (bytes) => {
        try {
          return decodeBinary(bytes);
        } catch (error) {
          throw new ConnectError(`parse binary: ${(error as Error).message}`, Code.Internal);
        }
      },
      encode: createBinaryEncoder(output),
    },
    json: {
      decode: (bytes) => {
        try {
          return decodeJson(bytes);
        } catch (error) {
          throw ConnectError.from(error, Code.InvalidArgument);
        }
      },
      encode: createConnectJsonEncoder(output, jsonOptions),
    },
  };
}

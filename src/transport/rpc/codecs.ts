import type { DescMessage, DescMethod } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { memoize } from "../../lib/cache.js";
import { createBinaryDecoder } from "../codec/binary-decoder.js";
import { createBinaryEncoder } from "../codec/binary-encoder.js";
import {
  createConnectJsonDecoder,
  createConnectJsonEncoder,
  type JsonOptions,
} from "../codec/connect-json.js";
import { cacheEncoded, type Encode } from "../codec/encoded-cache.js";
import { type Codec, closeEnvelope, envelopeSize } from "./protocols/protocol.js";

export type Codecs = Readonly<Record<"binary" | "json", Codec>>;

type Encoders = Readonly<Record<keyof Codecs, Encode>>;

/** Returns a function that creates the codecs of a method, in both formats. */
export function createCodecs(jsonOptions: JsonOptions): (method: DescMethod) => Codecs {
  // Methods with the same response type share its cache.
  const encodersOf = memoize((schema: DescMessage) => createEncoders(schema, jsonOptions));

  return ({ input, output }) => {
    const { binary, json } = encodersOf(output);
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
        encode: binary,
      },
      json: {
        decode: (bytes) => {
          try {
            return decodeJson(bytes);
          } catch (error) {
            throw ConnectError.from(error, Code.InvalidArgument);
          }
        },
        encode: json,
      },
    };
  };
}

function createEncoders(schema: DescMessage, jsonOptions: JsonOptions): Encoders {
  const encodeBinary = createBinaryEncoder(schema);
  return {
    binary: cacheEncoded((message) => closeEnvelope(encodeBinary(message, envelopeSize))),
    json: cacheEncoded(createConnectJsonEncoder(schema, jsonOptions)),
  };
}

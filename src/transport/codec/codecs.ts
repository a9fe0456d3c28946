import type { DescMessage, DescMethod } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { memoize } from "../../lib/cache.js";
import { type Codec, closeEnvelope, envelopeSize } from "../rpc/protocols/protocol.js";
import { createBinaryDecoder } from "./binary-decoder.js";
import { createBinaryEncoder } from "./binary-encoder.js";
import {
  createConnectJsonDecoder,
  createConnectJsonEncoder,
  type JsonOptions,
} from "./connect-json.js";
import { type Encode, keepEncoded } from "./encoded-cache.js";

export type Codecs = Readonly<Record<"binary" | "json", Codec>>;

type Encoders = Readonly<Record<keyof Codecs, Encode>>;

/** Creates what makes codecs of methods, which read their requests and write their answers in either format. */
export function createCodecs(jsonOptions: JsonOptions): (method: DescMethod) => Codecs {
  // Methods with the same answer share what is kept of it.
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
    binary: keepEncoded((message) => closeEnvelope(encodeBinary(message, envelopeSize))),
    json: keepEncoded(createConnectJsonEncoder(schema, jsonOptions)),
  };
}

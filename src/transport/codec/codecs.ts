import { createRegistry, type DescMessage, type DescMethod } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { memoize } from "../../lib/cache.js";
import { excessIn } from "../../lib/json.js";
import type { RpcOptions } from "../rpc/implementation.js";
import { type Codec, closeEnvelope, envelopeSize } from "../rpc/protocols/protocol.js";
import { createBinaryDecoder } from "./binary-decoder.js";
import { createBinaryEncoder } from "./binary-encoder.js";
import { createConnectJsonDecoder, createConnectJsonEncoder } from "./connect-json.js";
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

/** How the JSON of Connect is read and written. */
export type JsonOptions = ReturnType<typeof jsonOptionsFor>;

export function jsonOptionsFor({
  implementations,
  openImplementations,
  jsonDepth,
}: Pick<RpcOptions, "implementations" | "openImplementations" | "jsonDepth">) {
  const services = [...implementations, ...openImplementations].map(({ service }) => service);
  return {
    jsonDepth,
    // A mistyped name must not be taken for a field that was left out.
    ignoreUnknownFields: false,
    textDecoder: createTextDecoder(jsonDepth),
    // As over REST: that something is not allowed is said, and not left out.
    alwaysEmitImplicit: true,
    // The types that a message may hold in an Any, which JSON cannot be made of without them.
    registry: createRegistry(...services.map(({ file }) => file)),
  };
}

/** Creates what makes a text of bytes before anybody parses it. */
function createTextDecoder(jsonDepth: number) {
  // Bytes that are not UTF-8 would be replaced otherwise.
  const utf8 = new TextDecoder("utf-8", { fatal: true });
  return {
    decode(bytes: Uint8Array): string {
      const excess = excessIn(bytes, jsonDepth);
      if (excess !== undefined) {
        throw new Error(`it ${excess}`);
      }
      return utf8.decode(bytes);
    },
  };
}

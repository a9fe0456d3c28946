import type { DescMessage, DescMethod, Message } from "@bufbuild/protobuf";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { ApplicationSchema } from "../../../gen/latchkey/v1/application_service_pb.js";
import { memoize } from "../../lib/cache.js";
import type { Pipeline } from "../../middleware/pipeline.js";
import { createBinaryDecoder, createBinaryEncoder, encodeBinary } from "../codec/binary.js";
import {
  addLastUseToConnectJson,
  createConnectJsonDecoder,
  createConnectJsonEncoder,
  createJsonOptions,
  type JsonOptions,
} from "../codec/connect-json.js";
import { cacheEncoded, type Encode } from "../codec/encoded-cache.js";
import type { RequestHandler } from "../http/exchange.js";
import { createLibraryHandler } from "./connect-library/handler.js";
import {
  type Codecs,
  type Implementation,
  type MountedMethod,
  type RpcOptions,
  unauthenticatedBodyLimit,
} from "./methods.js";
import { envelop, envelopeSize } from "./protocols/protocol.js";
import { createStreamHandler } from "./streams/stream.js";
import { createUnaryHandler } from "./unary.js";

/** Creates the handler of gRPC, gRPC-Web and Connect: the fast paths first, the protocol library last. */
export function createRpcHandler(options: RpcOptions): RequestHandler {
  const { implementations, unauthenticatedImplementations, pipelines, jsonDepth } = options;
  const services = [...implementations, ...unauthenticatedImplementations].map(
    ({ service }) => service,
  );
  const jsonOptions = createJsonOptions(services, jsonDepth);
  const methods = mountMethods(options, jsonOptions);
  const unauthenticated = methods.filter(({ pipeline }) => pipeline === pipelines.unauthenticated);
  const unauthenticatedPaths = new Set(unauthenticated.map(({ path }) => path));
  const handleUnary = createUnaryHandler(methods);
  const handleStream = createStreamHandler(options, methods);
  const handleOther = createLibraryHandler(options, jsonOptions);
  return (exchange) => {
    exchange.isUnauthenticated = unauthenticatedPaths.has(exchange.path);
    return handleUnary(exchange) ?? handleStream(exchange) ?? handleOther(exchange);
  };
}

function mountMethods(options: RpcOptions, jsonOptions: JsonOptions): MountedMethod[] {
  const { implementations, unauthenticatedImplementations, bodyLimit, pipelines } = options;
  const codecsOf = createCodecs(jsonOptions);

  function mount(
    implementation: Implementation,
    pipeline: Pipeline,
    bodyLimitOf: (method: DescMethod) => number,
  ): MountedMethod[] {
    const { service } = implementation;
    return service.methods.map((method) => ({
      path: `/${service.typeName}/${method.name}`,
      method,
      implementation,
      codecs: codecsOf(method),
      pipeline,
      bodyLimit: bodyLimitOf(method),
    }));
  }

  return [
    ...implementations.flatMap((it) => mount(it, pipelines.authenticated, () => bodyLimit)),
    ...unauthenticatedImplementations.flatMap((it) =>
      mount(it, pipelines.unauthenticated, unauthenticatedBodyLimit),
    ),
  ];
}

type Encoders = Readonly<Record<keyof Codecs, Encode>>;

/** Returns a function that creates the codecs of a method, in both formats. */
function createCodecs(jsonOptions: JsonOptions): (method: DescMethod) => Codecs {
  // Methods with the same response type share its cache.
  const encodersOf = memoize((schema: DescMessage) => createEncoders(schema, jsonOptions));

  return ({ input, output }) => {
    const { binary, json } = encodersOf(output);
    return {
      binary: { decode: mapDecodeErrors(createBinaryDecoder(input)), encode: binary },
      json: { decode: mapDecodeErrors(createConnectJsonDecoder(input, jsonOptions)), encode: json },
    };
  };
}

type Decode = (bytes: Uint8Array) => Message;

/** Turns the errors of a decoder into those of an invalid request. */
function mapDecodeErrors(decode: Decode): Decode {
  return (bytes) => {
    try {
      return decode(bytes);
    } catch (error) {
      throw ConnectError.from(error, Code.InvalidArgument);
    }
  };
}

function createEncoders(schema: DescMessage, jsonOptions: JsonOptions): Encoders {
  const encode = createBinaryEncoder(schema);
  return {
    binary: cacheEncoded(schema, (message) => envelop(encode(message)), addLastUseToBinary),
    json: cacheEncoded(
      schema,
      createConnectJsonEncoder(schema, jsonOptions),
      addLastUseToConnectJson,
    ),
  };
}

/** Fields of a binary message may be in any order. */
function addLastUseToBinary(encoded: Buffer, lastUsedAt: Timestamp): Buffer {
  const message = encoded.subarray(envelopeSize);
  return envelop(Buffer.concat([message, encodeBinary(ApplicationSchema, { lastUsedAt })]));
}

import {
  createRegistry,
  type DescExtension,
  type DescFile,
  type DescService,
  type MessageInitShape,
  type Registry,
  toBinary,
} from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Code, type ServiceImpl } from "@connectrpc/connect";
import { file_google_rpc_error_details } from "../../../gen/google/rpc/error_details_pb.js";
import { file_google_rpc_status } from "../../../gen/google/rpc/status_pb.js";
import type {
  ServerReflection,
  ServerReflectionRequest,
  ServerReflectionResponseSchema,
} from "../../../gen/grpc/reflection/v1/reflection_pb.js";

type Response = NonNullable<
  MessageInitShape<typeof ServerReflectionResponseSchema>["messageResponse"]
>;

/** The standard gRPC reflection service, so that tools can call the server without its protos. */
export function createReflectionHandlers(
  services: readonly DescService[],
  stopping: AbortSignal,
): ServiceImpl<typeof ServerReflection> {
  let catalogue: Catalogue | undefined;

  return {
    async *serverReflectionInfo(requests) {
      // Created on first use: it takes longer than the rest of the startup, and few clients need it.
      catalogue ??= createCatalogue(services);
      for await (const request of until(stopping, requests)) {
        yield {
          validHost: request.host,
          originalRequest: request,
          messageResponse: respond(catalogue, request.messageRequest),
        };
      }
    },
  };
}

/** The services, files and symbols that reflection exposes. */
interface Catalogue {
  readonly services: readonly DescService[];
  /** The encoded response for each file. */
  readonly fileResponses: ReadonlyMap<DescFile, Response>;
  readonly registry: Registry;
}

/** The types of errors, which no service refers to. Clients look up their details by name. */
const errorFiles = [file_google_rpc_status, file_google_rpc_error_details];

function createCatalogue(services: readonly DescService[]): Catalogue {
  const files = withImports([...services.map(({ file }) => file), ...errorFiles]);
  return {
    services,
    fileResponses: new Map(files.map((file) => [file, fileResponse(file)])),
    registry: createRegistry(...files),
  };
}

function respond(
  { services, fileResponses, registry }: Catalogue,
  request: ServerReflectionRequest["messageRequest"],
): Response {
  const respondWithFile = (file: DescFile | undefined, name: string) =>
    (file && fileResponses.get(file)) ?? notFound(name);
  switch (request.case) {
    case "listServices":
      return {
        case: "listServicesResponse",
        value: { service: services.map(({ typeName }) => ({ name: typeName })) },
      };
    case "fileByFilename":
      return respondWithFile(
        [...fileResponses.keys()].find(({ proto }) => proto.name === request.value),
        request.value,
      );
    case "fileContainingSymbol":
      return respondWithFile(fileOfSymbol(registry, request.value), request.value);
    case "fileContainingExtension": {
      const { containingType, extensionNumber } = request.value;
      const extension = extensionsOf(registry, containingType).find(
        ({ number }) => number === extensionNumber,
      );
      return respondWithFile(extension?.file, `${containingType}/${extensionNumber}`);
    }
    case "allExtensionNumbersOfType":
      return registry.getMessage(request.value)
        ? {
            case: "allExtensionNumbersResponse",
            value: {
              baseTypeName: request.value,
              extensionNumber: extensionsOf(registry, request.value).map(({ number }) => number),
            },
          }
        : notFound(request.value);
    default:
      return failure(Code.InvalidArgument, "the request is empty");
  }
}

/** The file of a message, enum, service or extension, or of a member of one, by its full name. */
function fileOfSymbol(registry: Registry, symbol: string): DescFile | undefined {
  const parent = symbol.slice(0, symbol.lastIndexOf("."));
  return (registry.get(symbol) ?? registry.get(parent))?.file;
}

function extensionsOf(registry: Registry, typeName: string): DescExtension[] {
  return [...registry].filter(
    (desc): desc is DescExtension =>
      desc.kind === "extension" && desc.extendee.typeName === typeName,
  );
}

/** A file with all its imports, so that one request is enough. */
function fileResponse(file: DescFile): Response {
  const fileDescriptorProto = withImports([file]).map(({ proto }) =>
    toBinary(FileDescriptorProtoSchema, proto),
  );
  return { case: "fileDescriptorResponse", value: { fileDescriptorProto } };
}

function withImports(files: readonly DescFile[]): DescFile[] {
  const all = new Set(files);
  for (const file of all) {
    for (const dependency of file.dependencies) {
      all.add(dependency);
    }
  }
  return [...all];
}

function notFound(name: string): Response {
  return failure(Code.NotFound, `${name} not found`);
}

function failure(errorCode: Code, errorMessage: string): Response {
  return { case: "errorResponse", value: { errorCode, errorMessage } };
}

/** Yields messages until they end or the server stops. */
async function* until<T>(stopping: AbortSignal, messages: AsyncIterable<T>): AsyncIterable<T> {
  const iterator = messages[Symbol.asyncIterator]();
  let stop = () => {};
  const stopped = new Promise<undefined>((resolve) => {
    stop = () => resolve(undefined);
  });
  stopping.addEventListener("abort", stop);
  try {
    while (!stopping.aborted) {
      const next = await Promise.race([iterator.next(), stopped]);
      if (!next || next.done) {
        return;
      }
      yield next.value;
    }
  } finally {
    stopping.removeEventListener("abort", stop);
  }
}

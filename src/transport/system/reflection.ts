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
import type {
  ServerReflection,
  ServerReflectionRequest,
  ServerReflectionResponseSchema,
} from "../../../gen/grpc/reflection/v1/reflection_pb.js";

type Answer = NonNullable<
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
      // It takes longer to make than all else at start, and few ever ask.
      catalogue ??= createCatalogue(services);
      for await (const request of until(stopping, requests)) {
        yield {
          validHost: request.host,
          originalRequest: request,
          messageResponse: answer(catalogue, request.messageRequest),
        };
      }
    },
  };
}

/** All that can be asked about. */
interface Catalogue {
  readonly services: readonly DescService[];
  /** What to say of each file, made once. */
  readonly answers: ReadonlyMap<DescFile, Answer>;
  readonly registry: Registry;
}

function createCatalogue(services: readonly DescService[]): Catalogue {
  const files = withImports(services.map(({ file }) => file));
  return {
    services,
    answers: new Map(files.map((file) => [file, answerWith(file)])),
    registry: createRegistry(...files),
  };
}

function answer(
  { services, answers, registry }: Catalogue,
  question: ServerReflectionRequest["messageRequest"],
): Answer {
  const answerFor = (file: DescFile | undefined, name: string) =>
    (file && answers.get(file)) ?? notFound(name);
  switch (question.case) {
    case "listServices":
      return {
        case: "listServicesResponse",
        value: { service: services.map(({ typeName }) => ({ name: typeName })) },
      };
    case "fileByFilename":
      return answerFor(
        [...answers.keys()].find(({ proto }) => proto.name === question.value),
        question.value,
      );
    case "fileContainingSymbol":
      return answerFor(fileOfSymbol(registry, question.value), question.value);
    case "fileContainingExtension": {
      const { containingType, extensionNumber } = question.value;
      const extension = extensionsOf(registry, containingType).find(
        ({ number }) => number === extensionNumber,
      );
      return answerFor(extension?.file, `${containingType}/${extensionNumber}`);
    }
    case "allExtensionNumbersOfType":
      return registry.getMessage(question.value)
        ? {
            case: "allExtensionNumbersResponse",
            value: {
              baseTypeName: question.value,
              extensionNumber: extensionsOf(registry, question.value).map(({ number }) => number),
            },
          }
        : notFound(question.value);
    default:
      return failure(Code.InvalidArgument, "the request asks nothing");
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

/** A file with all that it imports, so that one question is enough. */
function answerWith(file: DescFile): Answer {
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

function notFound(name: string): Answer {
  return failure(Code.NotFound, `there is no ${name}`);
}

function failure(errorCode: Code, errorMessage: string): Answer {
  return { case: "errorResponse", value: { errorCode, errorMessage } };
}

/** Passes messages on until they end or the server stops. */
async function* until<T>(stopping: AbortSignal, messages: AsyncIterable<T>): AsyncIterable<T> {
  const iterator = messages[Symbol.asyncIterator]();
  // A signal of its own, so that streams leave nothing behind on the one that all share.
  const end = AbortSignal.any([stopping]);
  let stop = () => {};
  const stopped = new Promise<undefined>((resolve) => {
    stop = () => resolve(undefined);
  });
  end.addEventListener("abort", stop);
  try {
    while (!end.aborted) {
      const next = await Promise.race([iterator.next(), stopped]);
      if (!next || next.done) {
        return;
      }
      yield next.value;
    }
  } finally {
    end.removeEventListener("abort", stop);
  }
}

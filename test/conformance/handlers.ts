import { setTimeout as delay } from "node:timers/promises";
import type { Message } from "@bufbuild/protobuf";
import { anyPack } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import { AskedProblem } from "./asked-problem.js";
import type {
  Header,
  Payload,
  Protos,
  RequestInfo,
  StreamRequest,
  StreamResponseDefinition,
  UnaryRequest,
} from "./protos.js";

/** The handlers of ConformanceService: requests say what to answer, and answers what was asked. */
export function createHandlers(protos: Protos) {
  const infoSchema = protos.message("ConformancePayload.RequestInfo");

  async function answerOnce(
    requests: readonly UnaryRequest[],
    context: HandlerContext,
  ): Promise<Payload> {
    const definition = requests[0]?.responseDefinition;
    setMetadata(context, definition);
    await pause(definition, context);
    const requestInfo = describe(requests, context);
    const { response } = definition ?? {};
    if (response?.case === "error") {
      throw new AskedProblem(response.value, { desc: infoSchema, value: requestInfo });
    }
    return { payload: { data: response?.value, requestInfo } };
  }

  /** Gives the answers from the one with the number `sent` on, and ends as is asked. */
  async function* answerRest(
    requests: readonly StreamRequest[],
    definition: StreamResponseDefinition | undefined,
    sent: number,
    context: HandlerContext,
  ): AsyncGenerator<Payload> {
    const requestInfo = sent === 0 ? describe(requests, context) : undefined;
    for (const [index, data] of (definition?.responseData ?? []).slice(sent).entries()) {
      await pause(definition, context);
      yield { payload: { data, requestInfo: index === 0 ? requestInfo : undefined } };
    }
    if (definition?.error) {
      const isTold = definition.responseData.length > 0 || !requestInfo;
      const details = isTold ? [] : [{ desc: infoSchema, value: requestInfo }];
      throw new AskedProblem(definition.error, ...details);
    }
  }

  return {
    unary: (request: UnaryRequest, context: HandlerContext) => answerOnce([request], context),

    idempotentUnary: (request: UnaryRequest, context: HandlerContext) =>
      answerOnce([request], context),

    async clientStream(stream: AsyncIterable<UnaryRequest>, context: HandlerContext) {
      const requests: UnaryRequest[] = [];
      for await (const request of stream) {
        requests.push(request);
      }
      return answerOnce(requests, context);
    },

    serverStream(request: StreamRequest, context: HandlerContext) {
      setMetadata(context, request.responseDefinition);
      return answerRest([request], request.responseDefinition, 0, context);
    },

    async *bidiStream(stream: AsyncIterable<StreamRequest>, context: HandlerContext) {
      let first: StreamRequest | undefined;
      let requests: StreamRequest[] = [];
      let sent = 0;
      for await (const request of stream) {
        requests.push(request);
        if (!first) {
          first = request;
          setMetadata(context, first.responseDefinition);
        }
        if (!first.fullDuplex) {
          continue;
        }
        const data = first.responseDefinition?.responseData[sent];
        if (!data) {
          break;
        }
        await pause(first.responseDefinition, context);
        const requestInfo =
          sent === 0 ? describe(requests, context) : { requests: pack(requests, context) };
        yield { payload: { data, requestInfo } };
        requests = [];
        sent += 1;
      }
      yield* answerRest(requests, first?.responseDefinition, sent, context);
    },
  };
}

/** What the server saw of a call. */
function describe(requests: readonly Message[], context: HandlerContext): RequestInfo {
  const timeout = context.timeoutMs();
  return {
    requestHeaders: toHeaders(context.requestHeader),
    timeoutMs: timeout === undefined ? undefined : BigInt(Math.ceil(timeout)),
    requests: pack(requests, context),
    connectGetInfo:
      context.requestMethod === "GET"
        ? { queryParams: toHeaders(new URL(context.url).searchParams) }
        : undefined,
  };
}

function pack(requests: readonly Message[], { method }: HandlerContext) {
  return requests.map((request) => anyPack(method.input, request));
}

function toHeaders(pairs: Iterable<[string, string]>): Header[] {
  return [...pairs].map(([name, value]) => ({ name, value: [value] }));
}

function setMetadata(
  { responseHeader, responseTrailer }: HandlerContext,
  definition: UnaryRequest["responseDefinition"] | StreamResponseDefinition,
): void {
  append(responseHeader, definition?.responseHeaders);
  append(responseTrailer, definition?.responseTrailers);
}

function append(headers: Headers, added: readonly Header[] = []): void {
  for (const { name, value } of added) {
    for (const each of value) {
      headers.append(name, each);
    }
  }
}

/** Waits for as long as is asked, or until the call is given up. */
async function pause(
  definition: { readonly responseDelayMs: number } | undefined,
  { signal }: HandlerContext,
): Promise<void> {
  if (definition?.responseDelayMs) {
    await delay(definition.responseDelayMs, undefined, { signal }).catch(() => {});
    signal.throwIfAborted();
  }
}

import { setTimeout as delay } from "node:timers/promises";
import type { DescMessage, Message, MessageInitShape } from "@bufbuild/protobuf";
import { anyPack } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import { Problem } from "../../src/errors.js";
import type {
  ErrorDefinition,
  Header,
  Payload,
  Protos,
  RequestInfo,
  StreamRequest,
  StreamResponseDefinition,
  UnaryRequest,
} from "./protos.js";

/** The handlers of ConformanceService. Requests define the responses, and responses echo the requests. */
export function createHandlers(protos: Protos) {
  const infoSchema = protos.message("ConformancePayload.RequestInfo");

  async function respondOnce(
    requests: readonly UnaryRequest[],
    context: HandlerContext,
  ): Promise<Payload> {
    const definition = requests[0]?.responseDefinition;
    setMetadata(context, definition);
    await pause(definition, context);
    const requestInfo = toRequestInfo(requests, context);
    const { response } = definition ?? {};
    if (response?.case === "error") {
      throw new RequestedProblem(response.value, { desc: infoSchema, value: requestInfo });
    }
    return { payload: { data: response?.value, requestInfo } };
  }

  /** Sends the responses after the first `sent`, and ends with the requested error, if any. */
  async function* sendRemaining(
    requests: readonly StreamRequest[],
    definition: StreamResponseDefinition | undefined,
    sent: number,
    context: HandlerContext,
  ): AsyncGenerator<Payload> {
    const requestInfo = sent === 0 ? toRequestInfo(requests, context) : undefined;
    for (const [index, data] of (definition?.responseData ?? []).slice(sent).entries()) {
      await pause(definition, context);
      yield { payload: { data, requestInfo: index === 0 ? requestInfo : undefined } };
    }
    if (definition?.error) {
      const wasSent = definition.responseData.length > 0 || !requestInfo;
      const details = wasSent ? [] : [{ desc: infoSchema, value: requestInfo }];
      throw new RequestedProblem(definition.error, ...details);
    }
  }

  return {
    unary: (request: UnaryRequest, context: HandlerContext) => respondOnce([request], context),

    idempotentUnary: (request: UnaryRequest, context: HandlerContext) =>
      respondOnce([request], context),

    async clientStream(stream: AsyncIterable<UnaryRequest>, context: HandlerContext) {
      const requests: UnaryRequest[] = [];
      for await (const request of stream) {
        requests.push(request);
      }
      return respondOnce(requests, context);
    },

    serverStream(request: StreamRequest, context: HandlerContext) {
      setMetadata(context, request.responseDefinition);
      return sendRemaining([request], request.responseDefinition, 0, context);
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
          sent === 0 ? toRequestInfo(requests, context) : { requests: pack(requests, context) };
        yield { payload: { data, requestInfo } };
        requests = [];
        sent += 1;
      }
      yield* sendRemaining(requests, first?.responseDefinition, sent, context);
    },
  };
}

/** The request as the server received it. */
function toRequestInfo(requests: readonly Message[], context: HandlerContext): RequestInfo {
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

/** Waits for the requested delay, or until the call is canceled. */
async function pause(
  definition: { readonly responseDelayMs: number } | undefined,
  { signal }: HandlerContext,
): Promise<void> {
  if (definition?.responseDelayMs) {
    await delay(definition.responseDelayMs, undefined, { signal }).catch(() => {});
    signal.throwIfAborted();
  }
}

interface Detail {
  readonly desc: DescMessage;
  readonly value: MessageInitShape<DescMessage>;
}

/** A problem with the code, message and details that the test requests. */
class RequestedProblem extends Problem {
  constructor({ code, message = "", details }: ErrorDefinition, ...more: readonly Detail[]) {
    super("internal", message);
    Object.assign(this, { code });
    const requested = details.map(({ typeUrl, value }) => ({
      type: typeUrl.slice(typeUrl.lastIndexOf("/") + 1),
      value,
    }));
    this.details = [...requested, ...more];
  }
}

import type { DescMethod } from "@bufbuild/protobuf";
import {
  Code,
  type StreamRequest,
  type StreamResponse,
  type UnaryRequest,
  type UnaryResponse,
} from "@connectrpc/connect";
import type { Logger } from "pino";
import { type Call, callKey } from "../caller.js";
import { nameOfMethod } from "../contract.js";
import { type Problem, toProblem } from "../errors.js";
import type { Denials } from "../events/denials.js";
import type { CallMetrics, MethodCounts } from "../metrics/call-metrics.js";
import { oncePer } from "../once-per.js";
import { traceIdIn } from "../tracing/trace-id.js";
import type { CallSpan, Tracing } from "../tracing/tracing.js";
import { withEnd } from "../with-end.js";
import { createCallLines, type WriteCallLine } from "./call-line.js";
import { reasonOf } from "./deadline.js";
import type { Interceptor, Next } from "./interceptor.js";
import { withMessage } from "./with-message.js";

/** Those who want to know of calls, beside the log. */
interface Observers {
  readonly denials?: Pick<Denials, "note"> | undefined;
  readonly calls?: CallMetrics | undefined;
  readonly tracing?: Tracing | undefined;
}

/** A call that is observed, and how it has ended once it has. */
interface ObservedCall {
  readonly request: UnaryRequest | StreamRequest;
  readonly call: Call;
  readonly method: ObservedMethod;
  readonly span: CallSpan | undefined;
  readonly traceId: string | undefined;
  milliseconds: number;
  code: string;
  problem: Problem | undefined;
}

interface ObservedMethod {
  readonly counts: MethodCounts | undefined;
  readonly writeLine: WriteCallLine;
}

/**
 * Writes one line about each call when it ends, counts it, makes a span of it,
 * and turns whatever was thrown inside into what the caller may see, with the
 * request id on it. Callers that are refused are noted.
 */
export function createObserveInterceptor(
  log: Logger,
  { denials, calls, tracing }: Observers = {},
): Interceptor {
  const callLineOf = createCallLines(log);
  const methodOf = oncePer(
    (method: DescMethod): ObservedMethod => ({
      counts: calls?.of(method),
      writeLine: callLineOf(nameOfMethod(method)),
    }),
  );

  function begin(request: UnaryRequest | StreamRequest): ObservedCall {
    const call = request.contextValues.get(callKey);
    const method = methodOf(request.method);
    const span = tracing?.beginCall(request.method, call, request.requestMethod);
    call.logged = true;
    method.counts?.begin();
    const traceId = span?.traceId ?? traceIdIn(call.peer.headers.traceparent);
    return {
      request,
      call,
      method,
      span,
      traceId,
      milliseconds: 0,
      code: "ok",
      problem: undefined,
    };
  }

  function explain(observed: ObservedCall, reason: unknown): Problem {
    const { request, call } = observed;
    const problem = toProblem(reason);
    problem.describeFor(call.requestId);
    observed.problem = problem;
    end(observed, problem.word);
    if (isDenial(problem)) {
      denials?.note(request, problem);
    }
    return problem;
  }

  function succeed(observed: ObservedCall, response: UnaryResponse | StreamResponse) {
    if (!response.stream) {
      end(observed, "ok");
      return response;
    }
    const { span } = observed;
    const messages = span ? runEach(response.message, span) : response.message;
    return withMessage(response, observeEach(messages, observed, explain));
  }

  function succeedLater(
    observed: ObservedCall,
    response: Promise<UnaryResponse | StreamResponse>,
  ): ReturnType<Next> {
    return response.then(
      (value) => succeed(observed, value),
      (reason) => {
        throw explain(observed, reason);
      },
    );
  }

  return (next) => (request) => {
    const observed = begin(request);
    let response: ReturnType<Next>;
    try {
      response = observed.span ? runIn(observed.span, next, request) : next(request);
    } catch (reason) {
      throw explain(observed, reason);
    }
    return response instanceof Promise
      ? succeedLater(observed, response)
      : succeed(observed, response);
  };
}

/** Tells all who want to know that a call has ended. */
function end(observed: ObservedCall, code: string): void {
  const { call, method, span, problem } = observed;
  observed.code = code;
  observed.milliseconds = performance.now() - call.startedAt;
  method.counts?.end(call.protocol, code, observed.milliseconds);
  span?.end(problem);
  method.writeLine(observed);
}

/** A caller may leave a stream at any time, which is no failure. */
function observeEach<T>(
  messages: AsyncIterable<T>,
  observed: ObservedCall,
  explain: (observed: ObservedCall, reason: unknown) => Problem,
): AsyncIterable<T> {
  const { signal } = observed.request;
  return withEnd(messages, (ended) => {
    if (ended.how === "failed") {
      throw explain(observed, ended.reason);
    }
    if (ended.how === "finished" && signal.aborted) {
      throw explain(observed, reasonOf(signal));
    }
    end(observed, ended.how === "finished" ? "ok" : "canceled");
  });
}

/** A function of its own, as what another function sees costs even where that is not made. */
function runIn(span: CallSpan, next: Next, request: UnaryRequest | StreamRequest) {
  return span.run(() => next(request));
}

/** The same messages, each made as a part of a span. */
function runEach<T>(messages: AsyncIterable<T>, span: CallSpan): AsyncIterable<T> {
  const source = messages[Symbol.asyncIterator]();
  const iterator: AsyncIterator<T> = {
    next: () => span.run(() => source.next()),
    return: async () => {
      await source.return?.();
      return { done: true, value: undefined };
    },
  };
  return { [Symbol.asyncIterator]: () => iterator };
}

/** Whether a problem is that the caller may not, or is not known. */
function isDenial({ code }: Problem): boolean {
  return code === Code.PermissionDenied || code === Code.Unauthenticated;
}

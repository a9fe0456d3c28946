import type { DescMethod } from "@bufbuild/protobuf";
import { Code, type StreamResponse, type UnaryResponse } from "@connectrpc/connect";
import type { Logger } from "pino";
import { callKey } from "../caller.js";
import { nameOfMethod } from "../contract.js";
import { type Problem, toProblem } from "../errors.js";
import type { Denials } from "../events/denials.js";
import type { CallMetrics } from "../metrics/call-metrics.js";
import { oncePer } from "../once-per.js";
import { traceIdIn } from "../tracing/trace-id.js";
import type { CallSpan, Tracing } from "../tracing/tracing.js";
import { withEnd } from "../with-end.js";
import { createCallLine } from "./call-line.js";
import { reasonOf } from "./deadline.js";
import type { Interceptor } from "./interceptor.js";
import { withMessage } from "./with-message.js";

/** Those who want to know of calls, beside the log. */
interface Observers {
  readonly denials?: Pick<Denials, "note"> | undefined;
  readonly calls?: CallMetrics | undefined;
  readonly tracing?: Tracing | undefined;
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
  const writeCallLine = createCallLine(log);
  const factsOf = oncePer((method: DescMethod) => ({
    name: nameOfMethod(method),
    counts: calls?.of(method),
  }));

  return (next) => (request) => {
    const call = request.contextValues.get(callKey);
    const started = performance.now();
    const { name, counts } = factsOf(request.method);
    const span = tracing?.beginCall(request.method, call, request.requestMethod);
    call.logged = true;
    counts?.begin();

    const end = (code: string, problem?: Problem) => {
      const milliseconds = performance.now() - started;
      counts?.end(call.protocol, code, milliseconds);
      span?.end(problem);
      const traceId = span?.traceId ?? traceIdIn(call.peer.headers.traceparent);
      writeCallLine({ call, method: name, code, milliseconds, traceId, problem });
    };
    const explain = (reason: unknown): Problem => {
      const problem = toProblem(reason);
      problem.describeFor(call.requestId);
      end(problem.word, problem);
      if (isDenial(problem)) {
        denials?.note(request, problem);
      }
      return problem;
    };

    const succeed = (response: UnaryResponse | StreamResponse) => {
      if (response.stream) {
        const messages = span ? runEach(response.message, span) : response.message;
        return withMessage(response, observeEach(messages, request.signal, end, explain));
      }
      end("ok");
      return response;
    };

    let response: ReturnType<typeof next>;
    try {
      response = span ? span.run(() => next(request)) : next(request);
    } catch (reason) {
      throw explain(reason);
    }
    if (!(response instanceof Promise)) {
      return succeed(response);
    }
    return response.then(succeed, (reason) => {
      throw explain(reason);
    });
  };
}

/** A caller may leave a stream at any time, which is no failure. */
function observeEach<T>(
  messages: AsyncIterable<T>,
  signal: AbortSignal,
  succeed: (code: string) => void,
  fail: (reason: unknown) => Problem,
): AsyncIterable<T> {
  return withEnd(messages, (end) => {
    if (end.how === "failed") {
      throw fail(end.reason);
    }
    if (end.how === "finished" && signal.aborted) {
      throw fail(reasonOf(signal));
    }
    succeed(end.how === "finished" ? "ok" : "canceled");
  });
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

import type { DescMethod } from "@bufbuild/protobuf";
import {
  Code,
  type StreamRequest,
  type StreamResponse,
  type UnaryRequest,
  type UnaryResponse,
} from "@connectrpc/connect";
import type { Logger } from "pino";
import pino from "pino";
import { type Call, callKey, type ProtocolName } from "../auth/caller.js";
import { methodName } from "../contract/methods.js";
import { type Problem, toProblem } from "../errors.js";
import { onIteratorEnd } from "../lib/async.js";
import { memoize } from "../lib/cache.js";
import type { Denials } from "../services/events/denials.js";
import { parseTraceId } from "../telemetry/load-tracing.js";
import type { CallMetrics, MethodCounts } from "../telemetry/metrics/calls.js";
import type { CallSpan, Tracing } from "../telemetry/tracing.js";
import { cancellationError } from "./deadline.js";
import { type Interceptor, type Next, withMessage } from "./interceptor.js";

/** Optional observers of calls. */
interface Observers {
  readonly denials?: Pick<Denials, "record"> | undefined;
  readonly calls?: CallMetrics | undefined;
  readonly tracing?: Tracing | undefined;
}

/** A call in progress, and its outcome once it has ended. */
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
 * Logs, counts and traces each call, converts thrown errors to problems with a
 * request id, and records denied calls.
 */
export function createObserveInterceptor(
  log: Logger,
  { denials, calls, tracing }: Observers = {},
): Interceptor {
  const callLineOf = createCallLines(log);
  const methodOf = memoize(
    (method: DescMethod): ObservedMethod => ({
      counts: calls?.(method),
      writeLine: callLineOf(methodName(method)),
    }),
  );

  function begin(request: UnaryRequest | StreamRequest): ObservedCall {
    const call = request.contextValues.get(callKey);
    const method = methodOf(request.method);
    const span = tracing?.beginCall(request.method, call, request.requestMethod);
    call.logged = true;
    method.counts?.begin();
    const traceId = span?.traceId ?? parseTraceId(call.peer.headers.traceparent);
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

  function fail(observed: ObservedCall, reason: unknown): Problem {
    const { request, call } = observed;
    const problem = toProblem(reason);
    problem.attachDetails(call.requestId);
    observed.problem = problem;
    end(observed, problem.problemCode);
    if (isDenial(problem)) {
      denials?.record(request, problem);
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
    return withMessage(response, observeEach(messages, observed, fail));
  }

  function observePromise(
    observed: ObservedCall,
    response: Promise<UnaryResponse | StreamResponse>,
  ): ReturnType<Next> {
    return response.then(
      (value) => succeed(observed, value),
      (reason) => {
        throw fail(observed, reason);
      },
    );
  }

  return (next) => (request) => {
    const observed = begin(request);
    let response: ReturnType<Next>;
    try {
      response = observed.span ? runIn(observed.span, next, request) : next(request);
    } catch (reason) {
      throw fail(observed, reason);
    }
    return response instanceof Promise
      ? observePromise(observed, response)
      : succeed(observed, response);
  };
}

/** Reports the end of a call to metrics, tracing and log. */
function end(observed: ObservedCall, code: string): void {
  const { call, method, span, problem } = observed;
  observed.code = code;
  observed.milliseconds = performance.now() - call.startedAt;
  method.counts?.end(call.protocol, code, observed.milliseconds);
  span?.end(problem);
  method.writeLine(observed);
}

/** A client may leave a stream at any time. That is not an error. */
function observeEach<T>(
  messages: AsyncIterable<T>,
  observed: ObservedCall,
  fail: (observed: ObservedCall, reason: unknown) => Problem,
): AsyncIterable<T> {
  const { signal } = observed.request;
  return onIteratorEnd(messages, (ended) => {
    if (ended.how === "failed") {
      throw fail(observed, ended.reason);
    }
    if (ended.how === "finished" && signal.aborted) {
      throw fail(observed, cancellationError(signal));
    }
    end(observed, ended.how === "finished" ? "ok" : "canceled");
  });
}

/** A separate function, because a closure in the caller would cost even when no span exists. */
function runIn(span: CallSpan, next: Next, request: UnaryRequest | StreamRequest) {
  return span.run(() => next(request));
}

/** Runs the production of each message inside the span. */
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

function isDenial({ code }: Problem): boolean {
  return code === Code.PermissionDenied || code === Code.Unauthenticated;
}

/** The data of a call's log line. */
interface CompletedCall {
  readonly call: Call;
  /** `ok`, or the code of the problem. */
  readonly code: string;
  readonly milliseconds: number;
  readonly traceId: string | undefined;
  readonly problem: Problem | undefined;
}

type WriteCallLine = (ended: CompletedCall) => void;

/** Pino's destination and time function, under its public symbols. */
interface PinoInternals {
  readonly [pino.symbols.streamSym]: { write(line: string): void };
  readonly [pino.symbols.timeSym]: () => string;
}

/**
 * Call lines are formatted here because that takes a fraction of pino's time,
 * and there is one per call. Server errors are rare and go through pino.
 */
function createCallLines(log: Logger): (method: string) => WriteCallLine {
  const { [pino.symbols.streamSym]: lines, [pino.symbols.timeSym]: time } =
    log as never as PinoInternals;
  const start = `{"level":${log.levels.values.info}`;

  return (method) => {
    const fieldsOf = createFields(method);
    return (ended) => {
      const { problem } = ended;
      if (problem && isServerError(problem)) {
        const level = problem.code === Code.Internal ? "error" : "warn";
        // Parsed back, so that the fields are listed in one place.
        log[level]({ ...JSON.parse(`{${fieldsOf(ended)}}`), err: problem.cause });
      } else if (log.isLevelEnabled("info")) {
        lines.write(`${start}${time()},${fieldsOf(ended)}}\n`);
      }
    };
  };
}

/** The fields of a call line as JSON. No value contains a character that JSON escapes. */
function createFields(method: string): (ended: CompletedCall) => string {
  // Cached for successful calls: fewer concatenated parts are faster.
  const outcomeOf = (protocol: ProtocolName, code: string) =>
    `","method":"${method}","protocol":"${protocol}","code":"${code}","duration_ms":`;
  const success = memoize((protocol: ProtocolName) => outcomeOf(protocol, "ok"));

  return ({ call, code, milliseconds, traceId }) => {
    const { requestId, caller, protocol } = call;
    const outcome = code === "ok" ? success(protocol) : outcomeOf(protocol, code);
    const application = caller ? `,"application_id":"${caller.application.id}"` : "";
    const session = caller?.session ? `,"session_id":"${caller.session.id}"` : "";
    const trace = traceId === undefined ? "" : `,"trace_id":"${traceId}"`;
    return `"request_id":"${requestId}${outcome}${formatMilliseconds(milliseconds)}${application}${session}${trace}`;
  };
}

function isServerError({ code }: Problem): boolean {
  return code === Code.Internal || code === Code.Unavailable;
}

const thousandths = Array.from({ length: 1_000 }, (_, count) => `.${`${count}`.padStart(3, "0")}`);

/** Milliseconds with three decimals. Formatting integers is three times as fast as formatting a fraction. */
function formatMilliseconds(milliseconds: number): string {
  const microseconds = Math.round(milliseconds * 1_000);
  return `${Math.floor(microseconds / 1_000)}${thousandths[microseconds % 1_000]}`;
}

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
import { nameOfMethod } from "../contract/methods.js";
import { type Problem, toProblem } from "../errors.js";
import { memoize } from "../lib/cache.js";
import { onIteratorEnd } from "../lib/iterators.js";
import type { Denials } from "../services/events/denials.js";
import type { CallMetrics, MethodCounts } from "../telemetry/metrics/calls.js";
import { type CallSpan, type Tracing, traceIdIn } from "../telemetry/tracing.js";
import { reasonOf } from "./deadline.js";
import { type Interceptor, type Next, withMessage } from "./interceptor.js";

/** Those who want to know of calls, beside the log. */
interface Observers {
  readonly denials?: Pick<Denials, "record"> | undefined;
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
  const methodOf = memoize(
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
  return onIteratorEnd(messages, (ended) => {
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

/** A call that has ended, as its line tells it. */
interface EndedCall {
  readonly call: Call;
  /** `ok`, or the word of its problem. */
  readonly code: string;
  readonly milliseconds: number;
  /** The trace that it is a part of. */
  readonly traceId: string | undefined;
  readonly problem: Problem | undefined;
}

/** Writes the line about a call. */
type WriteCallLine = (ended: EndedCall) => void;

/** What `pino` keeps under symbols: where its lines go, and what it writes of the time. */
interface Inside {
  readonly [pino.symbols.streamSym]: { write(line: string): void };
  readonly [pino.symbols.timeSym]: () => string;
}

/**
 * There is one such line for each call, so it is put together here: that takes
 * a fraction of the time that a log for all purposes does. What went wrong
 * with us, which is rare, is for such a log: it can hold anything.
 */
function createCallLines(log: Logger): (method: string) => WriteCallLine {
  const { [pino.symbols.streamSym]: lines, [pino.symbols.timeSym]: time } = log as never as Inside;
  const start = `{"level":${log.levels.values.info}`;

  return (method) => {
    const fieldsOf = createFields(method);
    return (ended) => {
      const { problem } = ended;
      if (problem && isOurs(problem)) {
        const level = problem.code === Code.Internal ? "error" : "warn";
        // Read back, so that the fields are listed once.
        log[level]({ ...JSON.parse(`{${fieldsOf(ended)}}`), err: problem.cause });
      } else if (log.isLevelEnabled("info")) {
        lines.write(`${start}${time()},${fieldsOf(ended)}}\n`);
      }
    };
  };
}

/**
 * Who called, what, how it ended and how long it took, in JSON. All of it is
 * made of letters, digits and a few signs, none of which JSON would escape.
 */
function createFields(method: string): (ended: EndedCall) => string {
  // Of most lines this part is the same, and each piece that a text is put together from costs.
  const outcomeOf = (protocol: ProtocolName, code: string) =>
    `","method":"${method}","protocol":"${protocol}","code":"${code}","duration_ms":`;
  const success = memoize((protocol: ProtocolName) => outcomeOf(protocol, "ok"));

  return ({ call, code, milliseconds, traceId }) => {
    const { requestId, caller, protocol } = call;
    const outcome = code === "ok" ? success(protocol) : outcomeOf(protocol, code);
    const application = caller ? `,"application_id":"${caller.application.id}"` : "";
    const session = caller?.session ? `,"session_id":"${caller.session.id}"` : "";
    const trace = traceId === undefined ? "" : `,"trace_id":"${traceId}"`;
    return `"request_id":"${requestId}${outcome}${toText(milliseconds)}${application}${session}${trace}`;
  };
}

/** Whether a problem is none of the caller's doing. */
function isOurs({ code }: Problem): boolean {
  return code === Code.Internal || code === Code.Unavailable;
}

/** The thousandths of a number, as they are written. */
const thousandths = Array.from({ length: 1_000 }, (_, count) => `.${`${count}`.padStart(3, "0")}`);

/** So many milliseconds, to the microsecond: written out of whole numbers, as a broken one takes three times as long. */
function toText(milliseconds: number): string {
  const microseconds = Math.round(milliseconds * 1_000);
  return `${Math.floor(microseconds / 1_000)}${thousandths[microseconds % 1_000]}`;
}

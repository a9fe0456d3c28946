import type { DescMethod } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import type { Caller } from "../auth/caller.js";
import type { Call, ProtocolName } from "../call.js";
import { methodName } from "../contract/methods.js";
import { type Problem, toProblem } from "../errors.js";
import { type MaybePromise, onIteratorEnd } from "../lib/async.js";
import { memoize } from "../lib/cache.js";
import type { Denials } from "../services/events/denials.js";
import type { ServiceLogger } from "../telemetry/log.js";
import type { CallMetrics, MethodCounts } from "../telemetry/metrics/calls.js";
import type { CallSpan, Tracing } from "../telemetry/tracing.js";
import { cancellationError } from "./deadline.js";

/** Optional observers of calls. */
interface Observers {
  readonly denials?: Pick<Denials, "record"> | undefined;
  readonly calls?: CallMetrics | undefined;
  readonly tracing?: Tracing | undefined;
}

interface ObservedMethod {
  readonly counts: MethodCounts | undefined;
  readonly writeLine: WriteCallLine;
}

/** Begins to observe a call. */
export type Observe = (call: Call) => Observation;

/**
 * Logs, counts and traces each call, converts thrown errors to problems with a
 * request id, and records denied calls.
 */
export function createObserve(
  log: ServiceLogger,
  { denials, calls, tracing }: Observers = {},
): Observe {
  const callLineOf = createCallLines(log);
  const methodOf = memoize(
    (method: DescMethod): ObservedMethod => ({
      counts: calls?.(method),
      writeLine: callLineOf(methodName(method)),
    }),
  );
  return (call) => new Observation(call, methodOf(call.method), tracing?.beginCall(call), denials);
}

/** The observation of a call. Ends with the call. */
class Observation {
  private caller: Caller | undefined;

  constructor(
    private readonly call: Call,
    private readonly method: ObservedMethod,
    private readonly span: CallSpan | undefined,
    private readonly denials: Pick<Denials, "record"> | undefined,
  ) {
    method.counts?.begin();
  }

  onAuthenticated(caller: Caller): void {
    this.caller = caller;
  }

  /** Runs a unary call. */
  unary<T>(run: () => MaybePromise<T>): MaybePromise<T> {
    let response: MaybePromise<T>;
    try {
      response = this.span ? this.span.run(run) : run();
    } catch (reason) {
      throw this.fail(reason);
    }
    if (response instanceof Promise) {
      return this.finishLater(response);
    }
    this.end("ok", undefined);
    return response;
  }

  /** A separate function, because variables that a closure captures cost time even if it is never created. */
  private finishLater<T>(response: Promise<T>): Promise<T> {
    return response.then(
      (value) => {
        this.end("ok", undefined);
        return value;
      },
      (reason) => {
        throw this.fail(reason);
      },
    );
  }

  /** Opens a stream. The call ends with it. */
  async stream<T>(open: () => Promise<AsyncIterable<T>>): Promise<AsyncIterable<T>> {
    const { span } = this;
    try {
      return span
        ? this.observeEach(runEach(await span.run(open), span))
        : this.observeEach(await open());
    } catch (reason) {
      throw this.fail(reason);
    }
  }

  /** A client may leave a stream at any time. That is not an error. */
  private observeEach<T>(messages: AsyncIterable<T>): AsyncIterable<T> {
    return onIteratorEnd(messages, (ended) => {
      if (ended.how === "failed") {
        throw this.fail(ended.reason);
      }
      const { signal } = this.call.cancellation;
      if (ended.how === "finished" && signal.aborted) {
        throw this.fail(cancellationError(signal));
      }
      this.end(ended.how === "finished" ? "ok" : "canceled", undefined);
    });
  }

  private fail(reason: unknown): Problem {
    const { call, caller } = this;
    const problem = toProblem(reason);
    problem.attachDetails(call.requestId);
    this.end(problem.problemCode, problem);
    if (isDenial(problem)) {
      this.denials?.record(call, caller, problem);
    }
    return problem;
  }

  /** Reports the end of the call to metrics, tracing and log. */
  private end(code: string, problem: Problem | undefined): void {
    const { call, caller, method, span } = this;
    const milliseconds = performance.now() - call.startedAt;
    method.counts?.end(call.protocol, code, milliseconds);
    span?.end(caller, problem);
    const traceId = span?.traceId ?? parseTraceId(call.peer.headers.traceparent);
    method.writeLine({ call, caller, code, milliseconds, traceId, problem });
  }
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

function isDenial({ code, isDecision }: Problem): boolean {
  return !isDecision && (code === Code.PermissionDenied || code === Code.Unauthenticated);
}

/** The data of a call's log line. */
interface CompletedCall {
  readonly call: Call;
  readonly caller: Caller | undefined;
  /** `ok`, or the code of the problem. */
  readonly code: string;
  readonly milliseconds: number;
  readonly traceId: string | undefined;
  readonly problem: Problem | undefined;
}

type WriteCallLine = (ended: CompletedCall) => void;

/**
 * Call lines are formatted here because there is one per call. Server errors
 * are rare and go through pino.
 */
function createCallLines(log: ServiceLogger): (method: string) => WriteCallLine {
  return (method) => {
    const fieldsOf = createFields(method);
    return (ended) => {
      const { problem } = ended;
      if (problem && isServerError(problem)) {
        const level = problem.code === Code.Internal ? "error" : "warn";
        // Parsed back, so that the fields are listed in one place.
        log[level]({ ...JSON.parse(`{${fieldsOf(ended)}}`), err: problem.cause });
      } else if (log.isLevelEnabled("info")) {
        log.infoJson(fieldsOf(ended));
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

  return ({ call, caller, code, milliseconds, traceId }) => {
    const { requestId, protocol } = call;
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

/** The trace id in a W3C `traceparent` header. */
export function parseTraceId(traceparent: string | string[] | undefined): string | undefined {
  if (typeof traceparent !== "string") {
    return undefined;
  }
  const [, id] =
    /^[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}/.exec(traceparent) ?? [];
  return id;
}

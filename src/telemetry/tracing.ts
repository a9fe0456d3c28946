import type { DescMethod } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import {
  type Attributes,
  type Context,
  context,
  ProxyTracerProvider,
  propagation,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import type { Caller } from "../auth/caller.js";
import type { Call, Peer, ProtocolName } from "../call.js";
import { type StoreSettings, version } from "../config/settings.js";
import { mayContainKey } from "../contract/key-text.js";
import { methodName, routeOf, statusOf } from "../contract/methods.js";
import type { Problem } from "../errors.js";
import { memoize } from "../lib/cache.js";

/** Creates spans with the tracer that is registered in this process. */
export interface Tracing {
  /** Starts the span of a call as a child of the caller's span. */
  beginCall(call: Call): CallSpan;

  /** Starts the span of a store call that began at `started`, by `performance.now()`. */
  beginStoreCall(operation: string, started: number): EndStoreCall | undefined;
}

export interface CallSpan {
  readonly traceId: string;
  /** Runs work with this span as the parent of new spans. */
  run<T>(work: () => T): T;
  /** Ends the span with the caller, if it was authenticated, and the problem of a failed call. */
  end(caller: Caller | undefined, problem: Problem | undefined): void;
}

type EndStoreCall = (errorCode: string | undefined) => void;

const systems: Record<StoreSettings["kind"], string> = { mongodb: "mongodb", embedded: "lmdb" };

/** The span name and constant attributes per method, protocol and HTTP method. */
const describeSpan = memoize((method: DescMethod) =>
  memoize((protocol: ProtocolName) =>
    memoize((requestMethod: string) => ({
      name: methodName(method),
      attributes: attributesOf(method, protocol, requestMethod),
    })),
  ),
);

/** Creates tracing with the registered tracer, if there is one. */
export function createTracing(store: StoreSettings["kind"]): Tracing | undefined {
  const tracer = findTracer();
  return (
    tracer && {
      beginCall({ method, protocol, requestMethod, requestId, peer }) {
        const active = context.active();
        // An active span belongs to outer instrumentation, which has read the headers already.
        const parent = trace.getSpan(active) ? active : extractParent(peer.headers, active);
        const { name, attributes } = describeSpan(method)(protocol)(requestMethod);
        const span = tracer.startSpan(name, { kind: SpanKind.SERVER, attributes }, parent);
        const spanContext = trace.setSpan(parent, span);
        return {
          traceId: span.spanContext().traceId,
          run: (work) => context.with(spanContext, work),
          end(caller, problem) {
            // Most calls are not sampled.
            if (span.isRecording()) {
              span.setAttributes(callerAttributes(requestId, caller));
              span.setAttributes(outcomeOf(method, protocol, problem));
              endSpan(span, problem && problem.status >= 500 ? problem.problemCode : undefined);
            }
          },
        };
      },

      beginStoreCall(operation, started) {
        if (!trace.getActiveSpan()?.isRecording()) {
          return undefined;
        }
        const span = tracer.startSpan(operation, {
          kind: store === "mongodb" ? SpanKind.CLIENT : SpanKind.INTERNAL,
          startTime: Date.now() - (performance.now() - started),
          attributes: { "db.system.name": systems[store], "db.operation.name": operation },
        });
        return (errorCode) => endSpan(span, errorCode);
      },
    }
  );
}

/** `undefined` if only the no-op proxy of the API is registered. */
function findTracer(): Tracer | undefined {
  const provider = trace.getTracerProvider();
  return provider instanceof ProxyTracerProvider
    ? provider.getDelegateTracer("latchkey", version)
    : provider.getTracer("latchkey", version);
}

/** The caller's trace context. Drops `tracestate` if it may contain a key. */
function extractParent(headers: Peer["headers"], active: Context): Context {
  const extracted = propagation.extract(active, headers);
  const span = trace.getSpanContext(extracted);
  if (!span?.traceState || !mayContainKey(span.traceState.serialize())) {
    return extracted;
  }
  const { traceState: _traceState, ...rest } = span;
  return trace.setSpanContext(extracted, rest);
}

/** Ends a span with the code of its error. The log has the details. */
function endSpan(span: Span, errorCode: string | undefined): void {
  if (errorCode !== undefined) {
    span.setStatus({ code: SpanStatusCode.ERROR, message: errorCode });
  }
  span.end();
}

/** Attributes by OpenTelemetry's semantic conventions. */
function attributesOf(
  method: DescMethod,
  protocol: ProtocolName,
  requestMethod: string,
): Attributes {
  const called = { "rpc.service": method.parent.typeName, "rpc.method": method.name };
  switch (protocol) {
    case "rest":
      return { ...called, "http.request.method": requestMethod, "http.route": routeOf(method) };
    case "connect":
      return { ...called, "rpc.system": "connect_rpc", "http.request.method": requestMethod };
    default:
      return { ...called, "rpc.system": "grpc" };
  }
}

/** The request and application ids, named as in the log. */
function callerAttributes(requestId: string, caller: Caller | undefined): Attributes {
  const request = { "latchkey.request_id": requestId };
  return caller ? { ...request, "latchkey.application_id": caller.application.id } : request;
}

/** The outcome by OpenTelemetry's semantic conventions. */
function outcomeOf(
  method: DescMethod,
  protocol: ProtocolName,
  problem: Problem | undefined,
): Attributes {
  const error = problem ? { "error.type": problem.problemCode } : {};
  switch (protocol) {
    case "rest":
      return { ...error, "http.response.status_code": problem?.status ?? statusOf(method) };
    case "connect":
      return problem
        ? { ...error, "rpc.connect_rpc.error_code": toConnectCode(problem.code) }
        : error;
    default:
      return { ...error, "rpc.grpc.status_code": problem?.code ?? 0 };
  }
}

/** A code as Connect spells it, such as `not_found`. */
function toConnectCode(code: Code): string {
  return Code[code].replaceAll(/(?<=[a-z])[A-Z]/g, (letter) => `_${letter}`).toLowerCase();
}

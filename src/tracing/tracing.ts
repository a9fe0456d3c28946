import type { DescMethod } from "@bufbuild/protobuf";
import type { Call } from "../caller.js";
import type { StoreSettings } from "../config.js";
import type { Problem } from "../errors.js";

/** Makes spans of calls, for whoever has registered a tracer in this process. */
export interface Tracing {
  /** Begins the span of a call, as a part of the trace that its caller names. */
  beginCall(method: DescMethod, call: Call, requestMethod: string): CallSpan;

  /** Begins the span of a call of the store, which began at that moment of `performance.now()`, within a call. */
  beginStoreCall(operation: string, started: number): EndStoreCall | undefined;
}

export interface CallSpan {
  readonly traceId: string;
  /** Does a part of the call: spans that are begun by it become parts of this one. */
  run<T>(work: () => T): T;
  end(problem: Problem | undefined): void;
}

/** Called when it has ended, with what went wrong where something did. */
export type EndStoreCall = (fault: string | undefined) => void;

/** Where every copy of the API of OpenTelemetry looks for what is registered with it. */
const registrations = Symbol.for("opentelemetry.js.api.1");

/** Tracing, where a tracer is registered: otherwise not even the API is loaded. */
export async function loadTracing(store: StoreSettings["kind"]): Promise<Tracing | undefined> {
  if (!(registrations in globalThis)) {
    return undefined;
  }
  const { createTracing } = await import("./spans.js");
  return createTracing(store);
}

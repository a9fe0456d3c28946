import type { DescMethod } from "@bufbuild/protobuf";
import type { Call } from "../auth/caller.js";
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

/** The id of the trace that a caller names, in the form of the W3C, if it names one. */
export function traceIdIn(traceparent: string | string[] | undefined): string | undefined {
  if (typeof traceparent !== "string") {
    return undefined;
  }
  const [, id] =
    /^[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}/.exec(traceparent) ?? [];
  return id;
}

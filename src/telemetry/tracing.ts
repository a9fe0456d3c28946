import type { DescMethod } from "@bufbuild/protobuf";
import type { Call } from "../auth/caller.js";
import type { Problem } from "../errors.js";

/** Creates spans with the tracer that is registered in this process. */
export interface Tracing {
  /** Starts the span of a call as a child of the caller's span. */
  beginCall(method: DescMethod, call: Call, requestMethod: string): CallSpan;

  /** Starts the span of a store call that began at `started`, by `performance.now()`. */
  beginStoreCall(operation: string, started: number): EndStoreCall | undefined;
}

export interface CallSpan {
  readonly traceId: string;
  /** Runs work with this span as the parent of new spans. */
  run<T>(work: () => T): T;
  end(problem: Problem | undefined): void;
}

/** Ends the span of a store call. */
type EndStoreCall = (fault: string | undefined) => void;

/** The trace id in a W3C `traceparent` header. */
export function traceIdIn(traceparent: string | string[] | undefined): string | undefined {
  if (typeof traceparent !== "string") {
    return undefined;
  }
  const [, id] =
    /^[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}/.exec(traceparent) ?? [];
  return id;
}

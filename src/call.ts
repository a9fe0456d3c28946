import type { IncomingHttpHeaders } from "node:http";
import type { DescMethod } from "@bufbuild/protobuf";
import {
  type ContextKey,
  type ContextValues,
  createContextValues,
  type HandlerContext,
} from "@connectrpc/connect";
import type { Caller } from "./auth/caller.js";
import type { Cancellation } from "./lib/cancellation.js";
import type { CountedResponse, ResponseOwner } from "./lib/response-budget.js";

export interface Peer {
  /** The remote address of the connection. */
  readonly address: string;
  readonly headers: IncomingHttpHeaders;
  /** The names in the client certificate of the connection, which its authority has verified. */
  readonly certificateNames?: readonly string[];
}

export type ProtocolName = "rest" | "grpc" | "grpc-web" | "connect";

/** A rate limit, which a response can describe. */
export interface DescribedLimit {
  /** The headers for a bucket, if they are of use: names and values in alternation. */
  headersOf(bucket: string): readonly string[];
}

/** A call as its transport received it. */
export interface Call {
  readonly method: DescMethod;
  readonly protocol: ProtocolName;
  /** The HTTP method. */
  readonly requestMethod: string;
  readonly header: Pick<Headers, "get">;
  /** Whether a header, named in lower case, was sent more than once. */
  isRepeated(header: string): boolean;
  readonly requestId: string;
  /** When it arrived, by `performance.now()`. */
  readonly startedAt: number;
  readonly peer: Peer;
  /** Aborts the call before its response. */
  readonly cancellation: Cancellation;
  /** Called with the owner of the response, and the memory that is reserved for it, before it is built. */
  countResponseFor(owner: ResponseOwner, reserved?: CountedResponse): void;
  /** Called with the rate limit that the call counts against, so that the response can describe it. */
  onCounted(limit: DescribedLimit, bucket: string): void;
}

/** A call with its caller, who is authenticated and may make it. */
export interface AuthorizedCall {
  readonly call: Call;
  readonly caller: Caller;
  /** Authenticates and authorizes the caller again. Rejects if it has lost its access. */
  reauthorize(): Promise<void>;
}

type Context = Pick<HandlerContext, "values">;

const callKey: ContextKey<AuthorizedCall> = {
  id: Symbol("the authorized call"),
  get defaultValue(): never {
    throw new Error("handler called without authentication");
  },
};

/** Creates the context values for the handler of a call. */
export function contextValuesOf(authorized: AuthorizedCall): ContextValues {
  return createContextValues().set(callKey, authorized);
}

const unauthenticatedCallKey: ContextKey<Call> = {
  id: Symbol("the call of a method that needs no key"),
  get defaultValue(): never {
    throw new Error("handler called without a call");
  },
};

/** Creates the context values for the handler of a method that needs no key. */
export function unauthenticatedContextValuesOf(call: Call): ContextValues {
  return createContextValues().set(unauthenticatedCallKey, call);
}

/** The call that a handler runs for, if its method needs no key. */
export function unauthenticatedCallOf(context: Context): Call {
  return context.values.get(unauthenticatedCallKey);
}

/** The call that a handler runs for, if its method requires authentication. */
export function callOf(context: Context): AuthorizedCall {
  return context.values.get(callKey);
}

/** The caller of a method that requires authentication. */
export function callerOf(context: Context): Caller {
  return callOf(context).caller;
}

import type { IncomingHttpHeaders } from "node:http";
import { createContextKey, type HandlerContext } from "@connectrpc/connect";
import { type Grants, holds } from "../contract/grants.js";
import { Cancellation } from "../lib/cancellation.js";
import type { NewResponse } from "../store/port/change-context.js";
import type { Principal } from "../store/port/events.js";
import type { ApplicationRecord, KeyRecord, SessionRecord } from "../store/port/records.js";

/** The owner of the key of a call. */
export interface Caller {
  /** The application of the key, or the one that opened the session. */
  readonly application: ApplicationRecord;
  readonly session?: SessionRecord | undefined;
  /** The application that authorized the session. The session is revoked with it. */
  readonly authorizer?: ApplicationRecord | undefined;
  /** The authorizer, if it limits what the session may do. */
  readonly boundary?: ApplicationRecord | undefined;
  /** The key of the application. Absent for sessions. */
  readonly key?: KeyRecord | undefined;
}

export interface Peer {
  /** The remote address of the connection. */
  readonly address: string;
  readonly headers: IncomingHttpHeaders;
  /** Notified when a call has a valid key. */
  readonly connection?: { markAuthenticated(): void };
}

export type ProtocolName = "rest" | "grpc" | "grpc-web" | "connect";

/** The state of a call in progress. */
export interface Call {
  requestId: string;
  /** When it arrived, by `performance.now()`. */
  readonly startedAt: number;
  readonly peer: Peer;
  /** Aborts the call before its response. */
  readonly cancellation: Cancellation;
  /** REST, unless the RPC dispatcher sets another. */
  protocol: ProtocolName;
  /** Set by authentication. */
  caller?: Caller | undefined;
  /** The event loop tick in which the caller was last authenticated. */
  authenticatedAtTick?: number;
  /** Authenticates and authorizes the caller again, or throws. Set for streams and for replayable calls. */
  reauthorize?: () => Promise<void>;
  /** Set if the call is refused before its message is read. */
  refusal?: Error;
  /** The target of the call for the audit log, set by its handler. */
  target?: Principal;
  /** Set if the response must be stored together with the change, so that it can be replayed. */
  storedResponse?: StoredResponse | undefined;
  /** Set when the log line of the call is written or scheduled. */
  logged?: boolean;
}

/** How to store a response for replay. */
interface StoredResponse {
  readonly id: string;
  seal(response: object): NewResponse;
}

export const callKey = createContextKey<Call>(
  {
    requestId: "",
    startedAt: 0,
    peer: { address: "", headers: {} },
    cancellation: new Cancellation(),
    protocol: "rest",
  },
  { description: "the current call" },
);

/** The caller of a method that requires authentication. */
export function callerOf(context: Pick<HandlerContext, "values">): Caller {
  const { caller } = context.values.get(callKey);
  if (!caller) {
    throw new Error("handler called without authentication");
  }
  return caller;
}

/** Sets the target application of a call for the audit log. Returns its id as it is stored. */
export function setTargetApplication(context: Pick<HandlerContext, "values">, id: string): string {
  const applicationId = id.toLowerCase();
  context.values.get(callKey).target = { applicationId };
  return applicationId;
}

/** Returns a function that authorizes the caller again and throws if it has lost its access. */
export function reauthorizationOf(context: Pick<HandlerContext, "values">): () => Promise<void> {
  const { reauthorize } = context.values.get(callKey);
  if (!reauthorize) {
    throw new Error("call was not authorized");
  }
  return reauthorize;
}

/** The grants of the caller's key. A session has none until it is authorized. */
export function grantsOf({ application, session }: Caller): Grants {
  return session ?? application;
}

/** When the caller's key expires. A session never outlives its application or its authorizer. */
export function expiryOf({ application, session, authorizer, key }: Caller): number | undefined {
  const expiry = Math.min(
    application.expiresAt ?? Number.POSITIVE_INFINITY,
    authorizer?.expiresAt ?? Number.POSITIVE_INFINITY,
    (session ?? key)?.expiresAt ?? Number.POSITIVE_INFINITY,
  );
  return Number.isFinite(expiry) ? expiry : undefined;
}

/** Whether a caller holds a permission. For a session, its authorizer must hold it too. */
export function callerHolds(caller: Caller, permission: string): boolean {
  const { boundary } = caller;
  return holds(grantsOf(caller), permission) && (!boundary || holds(boundary, permission));
}

import type { IncomingHttpHeaders } from "node:http";
import { createContextKey, type HandlerContext } from "@connectrpc/connect";
import { type Grants, holds } from "../contract/grants.js";
import { Cancellation } from "../lib/cancellation.js";
import type { NewAnswer } from "../store/port/audit.js";
import type { Party } from "../store/port/events.js";
import type { ApplicationRecord, KeyRecord, SessionRecord } from "../store/port/records.js";

/** Who makes a call, as its key says. */
export interface Caller {
  /** The application of the key, or the one that the session was opened with. */
  readonly application: ApplicationRecord;
  readonly session?: SessionRecord | undefined;
  /** The application that authorized the session. The session ends with it. */
  readonly authorizer?: ApplicationRecord | undefined;
  /** The authorizer, where the session may do only what the authorizer may do too. */
  readonly boundary?: ApplicationRecord | undefined;
  /** Which of the application's keys it is; absent where it is that of a session. */
  readonly key?: KeyRecord | undefined;
}

/** From where a call came, as the connection and the headers say. */
export interface Peer {
  /** The address at the other end of the connection. */
  readonly address: string;
  readonly headers: IncomingHttpHeaders;
  /** Where calls come over one: told when one has a key that works. */
  readonly connection?: { noteGoodKey(): void };
}

/** How a call comes. */
export type ProtocolName = "rest" | "grpc" | "grpc-web" | "connect";

/** What is known of a call while it is under way. */
export interface Call {
  requestId: string;
  /** When it came, as `performance.now()` tells time. */
  readonly startedAt: number;
  readonly peer: Peer;
  /** Its end before the answer, if it comes to that. */
  readonly cancellation: Cancellation;
  /** By REST, until a door to the others says otherwise. */
  protocol: ProtocolName;
  /** Set by authentication. */
  caller?: Caller | undefined;
  /** The turn of the event loop in which the caller was last authenticated. */
  authenticatedIn?: number;
  /** Authenticates and authorizes the caller again, or throws. Set for streams, and for calls whose answers can be given again. */
  readmit?: () => Promise<void>;
  /** Set where the call is refused before anything of its message is read. */
  refusal?: Error;
  /** Whom the call is about, where its handler has said so: a refusal tells it. */
  target?: Party;
  /** Set where the answer is to be kept with the change, so that it can be given again. */
  keepAnswer?: KeepAnswer | undefined;
  /** Set when the line about the call is written, or will be. */
  logged?: boolean;
}

/** How to keep an answer. */
export interface KeepAnswer {
  readonly id: string;
  seal(answer: object): NewAnswer;
}

export const callKey = createContextKey<Call>(
  {
    requestId: "",
    startedAt: 0,
    peer: { address: "", headers: {} },
    cancellation: new Cancellation(),
    protocol: "rest",
  },
  { description: "the call under way" },
);

/** The caller of a method that only authenticated callers reach. */
export function callerOf(context: Pick<HandlerContext, "values">): Caller {
  const { caller } = context.values.get(callKey);
  if (!caller) {
    throw new Error("a handler was reached without authentication");
  }
  return caller;
}

/** Says which application a call is about, before anything of it may be refused; answers its id as it is stored. */
export function aboutApplication(context: Pick<HandlerContext, "values">, id: string): string {
  const applicationId = id.toLowerCase();
  context.values.get(callKey).target = { applicationId };
  return applicationId;
}

/** Authenticates and authorizes the caller again, or throws where it has lost its access. */
export function readmissionOf(context: Pick<HandlerContext, "values">): () => Promise<void> {
  const { readmit } = context.values.get(callKey);
  if (!readmit) {
    throw new Error("a call was not admitted");
  }
  return readmit;
}

/** What the caller's key was granted. A session has no access until it is authorized. */
export function grantsOf({ application, session }: Caller): Grants {
  return session ?? application;
}

/** When the caller's key ends by itself. A session never outlives its application or its authorizer. */
export function endOf({ application, session, authorizer, key }: Caller): number | undefined {
  const end = Math.min(
    application.expiresAt ?? Number.POSITIVE_INFINITY,
    authorizer?.expiresAt ?? Number.POSITIVE_INFINITY,
    (session ?? key)?.expiresAt ?? Number.POSITIVE_INFINITY,
  );
  return Number.isFinite(end) ? end : undefined;
}

/** Whether a caller holds a permission: of a session its authorizer must hold it too. */
export function callerHolds(caller: Caller, permission: string): boolean {
  const { boundary } = caller;
  return holds(grantsOf(caller), permission) && (!boundary || holds(boundary, permission));
}

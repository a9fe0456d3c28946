import { createContextKey, type HandlerContext } from "@connectrpc/connect";
import { Ending } from "./ending.js";
import type { ApplicationRecord, Grants, SessionRecord } from "./store/store.js";

/** Who makes a call, as its key says. */
export interface Caller {
  /** The application of the key, or the one that the session was opened with. */
  readonly application: ApplicationRecord;
  readonly session?: SessionRecord | undefined;
}

/** What is known of a call while it is under way. */
export interface Call {
  readonly requestId: string;
  /** Its end before the answer, if it comes to that. */
  readonly ending: Ending;
  /** Set by authentication. */
  caller?: Caller | undefined;
  /** Lets the caller in once more, or throws: a stream can outlive the right to it. Set for streams. */
  readmit?: () => Promise<void>;
  /** Set where the call is refused before anything of its message is read. */
  refusal?: Error;
  /** Set when the line about the call is written, or will be. */
  logged?: boolean;
}

export const callKey = createContextKey<Call>(
  { requestId: "", ending: new Ending() },
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

/** What lets the caller of a stream in once more, or throws. */
export function readmissionOf(context: Pick<HandlerContext, "values">): () => Promise<void> {
  const { readmit } = context.values.get(callKey);
  if (!readmit) {
    throw new Error("a stream was opened without admission");
  }
  return readmit;
}

/** What the caller's key may do. A session has no access until it is authorized. */
export function grantsOf({ application, session }: Caller): Grants {
  return session ?? application;
}

/** When the caller's key ends by itself. A session never outlives its application. */
export function endOf({ application, session }: Caller): number | undefined {
  const end = Math.min(
    application.expiresAt ?? Number.POSITIVE_INFINITY,
    session?.expiresAt ?? Number.POSITIVE_INFINITY,
  );
  return Number.isFinite(end) ? end : undefined;
}

/** Whether a permission is held, directly or by a rule. The rules, which may be dear to read, are asked last. */
export function holds(grants: Grants, permission: string): boolean {
  return (
    grants.permissions.includes(permission) ||
    grants.rules.some((rule) => rule.permissions.includes(permission))
  );
}

/** Every permission that is held, directly or by a rule, once. */
export function permissionsIn({ permissions, rules }: Grants): string[] {
  return [...new Set([...permissions, ...rules.flatMap((rule) => rule.permissions)])];
}

/** The caller in a sentence. */
export function nameOf({ application, session }: Caller): string {
  const owner = `the ${application.type} application "${application.name}" (${application.id})`;
  return session ? `a session of ${owner}` : owner;
}

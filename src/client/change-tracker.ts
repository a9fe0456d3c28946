import {
  type CredentialChange,
  CredentialChangeSchema,
  type WatchCredentialsResponse,
} from "../../gen/latchkey/v1/access_service_pb.js";
import { choicesOf } from "../contract/fields.js";
import { isClockPlausible } from "../contract/reconnect.js";
import { createReadiness } from "./readiness.js";

export interface ChangeListeners {
  /** Called with the id of the application or session that changed. */
  readonly onChange: (principalId: string) => void;
  /** Called if changes may have been missed. */
  readonly onReset: () => void;
}

export type ChangeTracker = ReturnType<typeof createChangeTracker>;

/** Tracks the changes of consecutive streams, and up to when they are complete. */
export function createChangeTracker({ onChange, onReset }: ChangeListeners) {
  const recent = createRecentChanges();
  let resumeToken: string | undefined;

  function reset(): void {
    recent.addAll();
    onReset();
  }

  return {
    recent,
    completeness: createCompleteness(),
    reset,

    apply({ changes, reset: isReset, resumeToken: token }: WatchCredentialsResponse): void {
      if (isReset) {
        reset();
      }
      for (const change of changes) {
        const principalId = principalIdOf(change);
        if (principalId === undefined) {
          reset();
        } else {
          recent.add(principalId);
          onChange(principalId);
        }
      }
      resumeToken = token;
    },

    resumeToken: () => resumeToken,

    clearResumeToken(): void {
      resumeToken = undefined;
    },
  };
}

const knownKinds: ReadonlySet<string> = new Set(choicesOf(CredentialChangeSchema.field.kind));

/** The application or session that changed. `undefined` for a change that only a later version knows. */
function principalIdOf({ kind, sessionId, applicationId }: CredentialChange): string | undefined {
  return knownKinds.has(kind) ? sessionId || applicationId || undefined : undefined;
}

/** The minimum number of changes that are remembered. */
const minRemembered = 1_000;

/**
 * Remembers recent changes, to decide whether the result of a pending check may
 * be cached. Older changes count as changes of every principal.
 */
interface RecentChanges {
  /** The number of changes so far. */
  count(): number;

  /** Whether one of these principals may have changed after that count. */
  changedSince(count: number, principalIds: readonly (string | undefined)[]): boolean;

  add(principalId: string): void;

  /** Records that every principal may have changed. */
  addAll(): void;
}

function createRecentChanges(): RecentChanges {
  let total = 0;
  let recent: string[] = [];
  return {
    count: () => total,

    changedSince(count, principalIds) {
      const added = total - count;
      return (
        added > recent.length ||
        recent
          .slice(recent.length - added)
          .some((principalId) => principalIds.includes(principalId))
      );
    },

    add(principalId) {
      total++;
      recent.push(principalId);
      if (recent.length > 2 * minRemembered) {
        recent = recent.slice(-minRemembered);
      }
    },

    addAll() {
      total++;
      recent = [];
    },
  };
}

/** Holds the time up to which no change is missing. */
function createCompleteness() {
  const ready = createReadiness();
  let until = Number.NEGATIVE_INFINITY;
  return {
    until: () => until,
    /** Resolved when the time is known for the first time. */
    ready,

    advance(reached: number, now: number): void {
      if (isClockPlausible(reached, now)) {
        until = reached;
        ready.resolve();
      } else {
        until = Number.NEGATIVE_INFINITY;
      }
    },

    /** Nothing is complete until the next {@link advance}. */
    clear(): void {
      until = Number.NEGATIVE_INFINITY;
    },
  };
}

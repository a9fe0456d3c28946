import type { WatchCredentialsResponse } from "../../gen/latchkey/v1/access_service_pb.js";
import { isPossible } from "../lib/reconnect.js";

export interface ChangeListeners {
  /** Called with the id of the application or session that changed. */
  readonly onChange: (subject: string) => void;
  /** Called where changes may have been missed. */
  readonly onReset: () => void;
}

export type HeardChanges = ReturnType<typeof createHeardChanges>;

/** Creates what keeps all that was learnt from the streams, one after the other. */
export function createHeardChanges({ onChange, onReset }: ChangeListeners) {
  const memory = createChangeMemory();
  let resumeToken: string | undefined;

  function reset(): void {
    memory.addAll();
    onReset();
  }

  return {
    memory,
    complete: createCompleteness(),
    reset,

    take({ changes, reset: isReset, resumeToken: token }: WatchCredentialsResponse): void {
      if (isReset) {
        reset();
      }
      for (const { sessionId, applicationId } of changes) {
        const subject = sessionId || applicationId;
        memory.add(subject);
        onChange(subject);
      }
      resumeToken = token;
    },

    resumeToken: () => resumeToken,

    forgetResumeToken(): void {
      resumeToken = undefined;
    },
  };
}

/** How many changes are remembered at least. */
const remembered = 1_000;

/**
 * Remembers what changed of late, to tell whether an answer that was under way
 * meanwhile can be kept. Where it no longer knows it says that all changed.
 */
interface ChangeMemory {
  /** How many changes there were; {@link since} tells what came after such a number. */
  count(): number;

  /** Whether one of these subjects may have changed since. */
  since(count: number, subjects: readonly (string | undefined)[]): boolean;

  add(subject: string): void;

  /** Notes that anything may have changed. */
  addAll(): void;
}

function createChangeMemory(): ChangeMemory {
  let total = 0;
  let recent: string[] = [];
  return {
    count: () => total,

    since(count, subjects) {
      const news = total - count;
      return (
        news > recent.length ||
        recent.slice(recent.length - news).some((subject) => subjects.includes(subject))
      );
    },

    add(subject) {
      total++;
      recent.push(subject);
      if (recent.length > 2 * remembered) {
        recent = recent.slice(-remembered);
      }
    },

    addAll() {
      total++;
      recent = [];
    },
  };
}

/** Creates what keeps the moment up to which no change is missing. */
function createCompleteness() {
  const ready = createPromise();
  let until = Number.NEGATIVE_INFINITY;
  return {
    until: () => until,
    /** Settles when there is such a moment for the first time, or by hand. */
    ready,

    advance(reached: number, present: number): void {
      if (isPossible(reached, present)) {
        until = reached;
        ready.resolve();
      } else {
        until = Number.NEGATIVE_INFINITY;
      }
    },

    /** Lets nothing count as complete until the next {@link advance}. */
    forget(): void {
      until = Number.NEGATIVE_INFINITY;
    },
  };
}

function createPromise() {
  let resolve = () => {};
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

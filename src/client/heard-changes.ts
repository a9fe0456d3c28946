import type { WatchCredentialsResponse } from "../../gen/latchkey/v1/access_service_pb.js";
import { createChangeMemory } from "./change-memory.js";
import { createCompleteness } from "./completeness.js";

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

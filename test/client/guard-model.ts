import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { CheckAccessResponseSchema } from "../../gen/latchkey/v1/access_service_pb.js";
import { generateKey } from "../../src/auth/keys.js";
import { newId } from "../../src/lib/uuid.js";

/** The owner of a key. */
export interface Subject {
  readonly key: string;
  readonly applicationId: string;
  readonly sessionId?: string;
  /** Its states, each with its start. Every change adds one. */
  readonly history: { readonly from: number; readonly state: string }[];
}

/** The clock of the test, and the clock of the service with an offset and a drift. */
export interface Clocks {
  now(): number;
  advance(milliseconds: number): void;
  /** Converts a time of the test clock to the service clock. */
  serviceTime(time: number): number;
}

export type CheckResponse = MessageInitShape<typeof CheckAccessResponseSchema>;

/** Models the data of the service: an application, a session of it that expires, and another application. */
export function createModel(clocks: Clocks, sessionExpiry: number) {
  const [applicationId, otherId, sessionId] = [newId(1), newId(2), newId(3)];
  const initial = { from: Number.NEGATIVE_INFINITY, state: "0" };
  const application: Subject = {
    key: generateKey("prv", applicationId),
    applicationId,
    history: [initial],
  };
  const session: Subject = {
    key: generateKey("ses", sessionId),
    applicationId,
    sessionId,
    history: [initial, { from: sessionExpiry, state: "expired" }],
  };
  const otherApplication: Subject = {
    key: generateKey("prv", otherId),
    applicationId: otherId,
    history: [initial],
  };
  const subjects = [application, session, otherApplication];
  let version = 0;

  /** Adds a state to each subject, at a time that no other event has. */
  function changeStates(changed: readonly Subject[]): void {
    clocks.advance(0.01);
    for (const { history } of changed) {
      history.push({ from: clocks.now(), state: String(++version) });
    }
    clocks.advance(0.01);
  }

  return {
    subject: (index: number) => subjects[index % subjects.length] as Subject,

    /** A change of the application changes its session too. */
    change: (subject: Subject) =>
      changeStates(subject === application ? [application, session] : [subject]),

    changeAll: () => changeStates(subjects),

    /** The current response of the service. Its transform contains the state. */
    check(key: string): CheckResponse {
      const subject = subjects.find((candidate) => candidate.key === key) as Subject;
      const { applicationId, sessionId } = subject;
      const state = stateAt(subject, clocks.now());
      const expiresAt = timestampFromMs(Math.floor(clocks.serviceTime(sessionExpiry)));
      return {
        allowed: state !== "expired",
        ...(state === "expired" ? { reason: state } : { transform: state }),
        applicationId,
        ...(sessionId && { sessionId, expiresAt }),
        checkedAt: timestampFromMs(Math.ceil(clocks.serviceTime(clocks.now()))),
      };
    },

    /** Whether a subject was in a state at some time between `since` and `until`. */
    hadState(subject: Subject, state: string, since: number, until: number): boolean {
      const times = [since, ...subject.history.map(({ from }) => from)];
      return times.some(
        (time) => time >= since && time <= until && stateAt(subject, time) === state,
      );
    },
  };
}

function stateAt({ history }: Subject, time: number): string | undefined {
  const past = history.filter(({ from }) => from <= time);
  const latest = past.toSorted((one, other) => one.from - other.from).at(-1);
  return (past.find(({ state }) => state === "expired") ?? latest)?.state;
}

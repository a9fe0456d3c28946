import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { CheckAccessResponseSchema } from "../../gen/latchkey/v1/access_service_pb.js";
import { makeKey } from "../../src/auth/keys.js";
import { newId } from "../../src/lib/uuid.js";

/** The owner of a key. */
export interface Subject {
  readonly key: string;
  readonly applicationId: string;
  readonly sessionId?: string;
  /** Its states and their start. Each change adds one. */
  readonly history: { readonly from: number; readonly state: string }[];
}

/** A clock that the test advances, and the clock of the service with an offset and a drift. */
export interface Clocks {
  now(): number;
  pass(milliseconds: number): void;
  /** The time of the service at a time of ours. */
  serviceTime(time: number): number;
}

export type CheckResponse = MessageInitShape<typeof CheckAccessResponseSchema>;

/** The real state of an application, its session, which expires, and another application. */
export function createTruth(clocks: Clocks, sessionEnd: number) {
  const [application, other, session] = [newId(1), newId(2), newId(3)];
  const always = { from: Number.NEGATIVE_INFINITY, state: "0" };
  const end = { from: sessionEnd, state: "expired" };
  const owner: Subject = {
    key: makeKey("prv", application),
    applicationId: application,
    history: [always],
  };
  const guest: Subject = {
    key: makeKey("ses", session),
    applicationId: application,
    sessionId: session,
    history: [always, end],
  };
  const stranger: Subject = {
    key: makeKey("prv", other),
    applicationId: other,
    history: [always],
  };
  const subjects = [owner, guest, stranger];
  let versions = 0;

  /** Changes states, at a time of its own. */
  function alter(altered: readonly Subject[]): void {
    clocks.pass(0.01);
    for (const { history } of altered) {
      history.push({ from: clocks.now(), state: String(++versions) });
    }
    clocks.pass(0.01);
  }

  return {
    subject: (index: number) => subjects[index % subjects.length] as Subject,

    /** A change of the application changes its session too. */
    change: (subject: Subject) => alter(subject === owner ? [owner, guest] : [subject]),

    changeAll: () => alter(subjects),

    /** The response of the service now. The transform contains the state. */
    look(key: string): CheckResponse {
      const subject = subjects.find((candidate) => candidate.key === key) as Subject;
      const { applicationId, sessionId } = subject;
      const state = stateAt(subject, clocks.now());
      const expiresAt = timestampFromMs(Math.floor(clocks.serviceTime(sessionEnd)));
      return {
        allowed: state !== "expired",
        ...(state === "expired" ? { reason: state } : { transform: state }),
        applicationId,
        ...(sessionId && { sessionId, expiresAt }),
        checkedAt: timestampFromMs(Math.ceil(clocks.serviceTime(clocks.now()))),
      };
    },

    /** Whether a subject was in a state at some moment of a time. */
    wasTrue(subject: Subject, state: string, since: number, until: number): boolean {
      const moments = [since, ...subject.history.map(({ from }) => from)];
      return moments.some(
        (moment) => moment >= since && moment <= until && stateAt(subject, moment) === state,
      );
    },
  };
}

function stateAt({ history }: Subject, moment: number): string | undefined {
  const past = history.filter(({ from }) => from <= moment);
  const latest = past.toSorted((one, other) => one.from - other.from).at(-1);
  return (past.find(({ state }) => state === "expired") ?? latest)?.state;
}

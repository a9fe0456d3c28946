import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { CheckAccessResponseSchema } from "../../gen/latchkey/v1/access_service_pb.js";
import { generateKey } from "../../src/auth/keys.js";
import { newId } from "../../src/lib/uuid.js";

/** The owner of a key. */
export interface Principal {
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
  const application: Principal = {
    key: generateKey("prv", applicationId),
    applicationId,
    history: [initial],
  };
  const session: Principal = {
    key: generateKey("ses", sessionId),
    applicationId,
    sessionId,
    history: [initial, { from: sessionExpiry, state: "expired" }],
  };
  const otherApplication: Principal = {
    key: generateKey("prv", otherId),
    applicationId: otherId,
    history: [initial],
  };
  const principals = [application, session, otherApplication];
  let version = 0;

  /** Adds a state to each principal, at a time that no other event has. */
  function changeStates(changed: readonly Principal[]): void {
    clocks.advance(0.01);
    for (const { history } of changed) {
      history.push({ from: clocks.now(), state: String(++version) });
    }
    clocks.advance(0.01);
  }

  return {
    principal: (index: number) => principals[index % principals.length] as Principal,

    /** A change of the application changes its session too. */
    change: (principal: Principal) =>
      changeStates(principal === application ? [application, session] : [principal]),

    changeAll: () => changeStates(principals),

    /** The current response of the service. Its transform contains the state. */
    check(key: string): CheckResponse {
      const principal = principals.find((candidate) => candidate.key === key) as Principal;
      const { applicationId, sessionId } = principal;
      const state = stateAt(principal, clocks.now());
      const expiresAt = timestampFromMs(Math.floor(clocks.serviceTime(sessionExpiry)));
      return {
        allowed: state !== "expired",
        ...(state === "expired" ? { reason: state } : { transform: state }),
        applicationId,
        ...(sessionId && { sessionId, expiresAt }),
        checkedAt: timestampFromMs(Math.ceil(clocks.serviceTime(clocks.now()))),
      };
    },

    /** Whether a principal was in a state at some time between `since` and `until`. */
    hadState(principal: Principal, state: string, since: number, until: number): boolean {
      const times = [since, ...principal.history.map(({ from }) => from)];
      return times.some(
        (time) => time >= since && time <= until && stateAt(principal, time) === state,
      );
    },
  };
}

function stateAt({ history }: Principal, time: number): string | undefined {
  const past = history.filter(({ from }) => from <= time);
  const latest = past.toSorted((one, other) => one.from - other.from).at(-1);
  return (past.find(({ state }) => state === "expired") ?? latest)?.state;
}

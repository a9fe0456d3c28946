import {
  type ApplicationState,
  absentApplication,
  accepted as acceptsKey,
  exists,
  formatEvent,
  unauthenticated,
} from "./application-model.js";
import { read, type Step, write } from "./record.js";

/**
 * The state of a session as callers can observe it, with the applications that it depends on.
 *
 * The service reads these three records one after the other, so an accepted call is several steps:
 * each shows that one record allowed it, at moments of their own. A refused call is one step, in
 * which some record did not.
 */
export interface SessionState {
  readonly opener: ApplicationState;
  readonly authorizer: ApplicationState;
  readonly status: "absent" | "open" | "deleted";
  /** The epochs of the applications that calls have read before they open or authorize the session. */
  readonly epochsRead: Readonly<Record<string, number>>;
  /** The epoch of the opener with which it was opened. */
  readonly openedIn: number;
  /** The epoch of the authorizer with which it was authorized. */
  readonly authorizedIn?: number;
  /** The events of its changes, in order. */
  readonly events: readonly string[];
}

export const absentSession: SessionState = {
  opener: absentApplication,
  authorizer: absentApplication,
  status: "absent",
  epochsRead: {},
  openedIn: 0,
  events: [],
};

type Parent = "opener" | "authorizer";
type Check = (state: SessionState) => boolean;

/** Converts a step on an application into one on the sessions that depend on it. */
export function on(parent: Parent, step: Step<ApplicationState>): Step<SessionState> {
  const { isRead, apply, isReachableFrom } = step;
  return {
    isRead,
    apply(state) {
      const after = apply(state[parent]);
      return after === state[parent] ? state : after && { ...state, [parent]: after };
    },
    ...(isReachableFrom && { isReachableFrom: (state) => isReachableFrom(state[parent]) }),
  };
}

const observe = (check: Check) => read<SessionState>((state) => (check(state) ? state : undefined));

const isOpen: Check = ({ status }) => status === "open";
const isAuthorized: Check = ({ authorizedIn }) => authorizedIn !== undefined;
const keepsOpener: Check = ({ opener, openedIn }) => exists(opener) && opener.epoch === openedIn;
const keepsAuthorizer: Check = ({ authorizer, authorizedIn }) =>
  authorizedIn === undefined || (exists(authorizer) && authorizer.epoch === authorizedIn);
const isValid: Check = (state) => isOpen(state) && keepsOpener(state) && keepsAuthorizer(state);
const isUsable: Check = (state) =>
  isValid(state) &&
  state.opener.status === "enabled" &&
  (!isAuthorized(state) || state.authorizer.status === "enabled");

function readEpoch(parent: Parent, requestId: string): Step<SessionState> {
  return write((state) =>
    exists(state[parent])
      ? { ...state, epochsRead: { ...state.epochsRead, [requestId]: state[parent].epoch } }
      : undefined,
  );
}

/** An open call that succeeded with a key of the opener. */
export function opened(key: string, requestId: string): Step<SessionState>[] {
  return [
    on("opener", read(acceptsKey(key))),
    readEpoch("opener", requestId),
    write(({ epochsRead: { [requestId]: openedIn, ...epochsRead }, ...state }) =>
      state.status === "absent" && openedIn !== undefined
        ? { ...state, status: "open", epochsRead, openedIn }
        : undefined,
    ),
  ];
}

/** The steps of an authorize call with a key of the authorizer, by its result. */
export const authorizeResults: Readonly<
  Record<string, (key: string, requestId: string) => readonly Step<SessionState>[]>
> = {
  done: (key, requestId) => [
    on("authorizer", read(acceptsKey(key))),
    observe(keepsOpener),
    ...authorize(requestId),
  ],
  unknown: (_key, requestId) => authorize(requestId),
  nonce_used: (key) => [
    on("authorizer", read(acceptsKey(key))),
    observe((state) => isOpen(state) && isAuthorized(state)),
  ],
  nonce_not_found: (key) => [
    on("authorizer", read(acceptsKey(key))),
    observe((state) => !isValid(state)),
  ],
  unauthenticated: (key) => [on("authorizer", read(unauthenticated(key)))],
};

/** Spends the nonce. A revocation since the epoch was read revokes this session, too. */
function authorize(requestId: string): Step<SessionState>[] {
  return [
    readEpoch("authorizer", requestId),
    write(({ epochsRead: { [requestId]: authorizedIn, ...epochsRead }, ...state }) =>
      state.status === "open" && state.authorizedIn === undefined && authorizedIn !== undefined
        ? {
            ...state,
            epochsRead,
            authorizedIn,
            events: [...state.events, formatEvent("session.authorized", requestId)],
          }
        : undefined,
    ),
  ];
}

/** A call that did not find the session. */
export const notFound = (): Step<SessionState>[] => [observe((state) => !isValid(state))];

/** The steps of a delete call, by its result. */
export const deleteResults: Readonly<
  Record<string, (requestId: string) => readonly Step<SessionState>[]>
> = {
  done: (requestId) => [observe(keepsOpener), remove(requestId)],
  unknown: (requestId) => [remove(requestId)],
  session_not_found: notFound,
};

const remove = (requestId: string): Step<SessionState> =>
  write((state) =>
    state.status === "open"
      ? {
          ...state,
          status: "deleted",
          events: [...state.events, formatEvent("session.deleted", requestId)],
        }
      : undefined,
  );

/** A read that returned the session. */
export function found(authorized: boolean): Step<SessionState>[] {
  return [
    observe((state) => isOpen(state) && isAuthorized(state) === authorized),
    observe(keepsOpener),
    ...(authorized ? [observe(keepsAuthorizer)] : []),
  ];
}

/** A call with the key of the session that was accepted. */
export function accepted(authorized: boolean): Step<SessionState>[] {
  return [
    observe((state) => isOpen(state) && isAuthorized(state) === authorized),
    observe((state) => keepsOpener(state) && state.opener.status === "enabled"),
    ...(authorized
      ? [observe((state) => keepsAuthorizer(state) && state.authorizer.status === "enabled")]
      : []),
  ];
}

/** A call with the key of the session that was refused. */
export const refused = (): Step<SessionState>[] => [observe((state) => !isUsable(state))];

import type { Step } from "./record.js";

/** The state of an application as callers can observe it. */
export interface ApplicationState {
  readonly status: "absent" | "enabled" | "disabled" | "deleted";
  readonly name: string;
  /** The key that authenticates, or `undefined` if it is in a lost response. */
  readonly key?: string | undefined;
  /** All versions so far. A version in a lost response is empty. */
  readonly versions: readonly string[];
  /** The number of revocations of the sessions that it opened and authorized. */
  readonly epoch: number;
  /** The events of its changes, in order. */
  readonly events: readonly string[];
}

export const absentApplication: ApplicationState = {
  status: "absent",
  name: "",
  versions: [],
  epoch: 0,
  events: [],
};

/** What the response to a change shows of the application. */
export interface ShownApplication {
  readonly name: string;
  readonly status: string;
  readonly version: string;
  /** Only in responses that contain the key. */
  readonly key?: string | undefined;
}

type Transition = (state: ApplicationState) => ApplicationState | undefined;

export const exists = ({ status }: ApplicationState) =>
  status === "enabled" || status === "disabled";

export const formatEvent = (kind: string, requestId: string) => `${kind} ${requestId}`;

/** What a change does if it is not refused. */
export interface ApplicationChange {
  readonly kind: string;
  readonly requestId: string;
  /** The version that it requires. */
  readonly ifMatch?: string | undefined;
  readonly sets: Partial<Pick<ApplicationState, "name" | "status">>;
  readonly replacesKey?: boolean;
  readonly revokesSessions?: boolean;
}

/** A change that took effect. Without its response, the new version and key are unknown. */
export function changed(change: ApplicationChange, shown?: ShownApplication): Transition {
  const { kind, requestId, ifMatch, sets, replacesKey, revokesSessions } = change;
  return (state) => {
    const canApply = kind === "application.created" ? state.status === "absent" : exists(state);
    const matched = ifMatch === undefined ? state : withVersion(state, ifMatch);
    if (!canApply || !matched) {
      return undefined;
    }
    const after = {
      ...matched,
      ...sets,
      ...(replacesKey && { key: shown?.key }),
      epoch: state.epoch + (revokesSessions ? 1 : 0),
      versions: [...matched.versions, ""],
      events: [...state.events, formatEvent(kind, requestId)],
    };
    return shown ? withShown(after, shown) : after;
  };
}

/** A change that was refused because of the version. */
export function mismatched(ifMatch: string, current: string): Transition {
  return (state) =>
    exists(state) && current !== ifMatch ? withVersion(state, current) : undefined;
}

/** A read that returned the application. */
export function found(shown: ShownApplication): Transition {
  return (state) => (exists(state) ? withShown(state, shown) : undefined);
}

/** A call that did not find the application. */
export const notFound: Transition = (state) => (exists(state) ? undefined : state);

/** A call with a key of the application that was accepted. */
export function accepted(key: string): Transition {
  return (state) => (hasKey(state, key) ? state : undefined);
}

/** A call with a key of the application that was refused. */
export function unauthenticated(key: string): Transition {
  return (state) => (hasKey(state, key) ? undefined : state);
}

/** A list of the events of a record, oldest first. Its log only grows. */
export const listed = <State extends { readonly events: readonly string[] }>(
  listed: readonly string[],
): Step<State> => ({
  isRead: true,
  apply: (state) =>
    isPrefix(listed, state.events) && isPrefix(state.events, listed) ? state : undefined,
  isReachableFrom: ({ events }) => isPrefix(events, listed),
});

const isPrefix = (some: readonly string[], others: readonly string[]) =>
  some.every((item, index) => item === others[index]);

const hasKey = ({ status, key }: ApplicationState, used: string) =>
  status === "enabled" && key === used;

function withShown(
  state: ApplicationState,
  { name, status, version }: ShownApplication,
): ApplicationState | undefined {
  return state.name === name && state.status === status ? withVersion(state, version) : undefined;
}

/** The state if this is its version. No version is used twice. */
function withVersion(state: ApplicationState, version: string): ApplicationState | undefined {
  const { versions } = state;
  const current = versions.at(-1);
  if (current === version) {
    return state;
  }
  return current === "" && !versions.includes(version)
    ? { ...state, versions: [...versions.slice(0, -1), version] }
    : undefined;
}

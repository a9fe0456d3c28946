/** An application, as far as its one owner can know it by what was acknowledged. */
export interface Held {
  readonly id: string;
  /** The key that works; absent while a change of it is under way, or unanswered. */
  key: string | undefined;
  /** Counts the changes of its key, and its deletion, that were sent. */
  keyChanges: number;
  /** The number in the name that was acknowledged last, and in the one that was sent last. */
  named: number;
  sent: number;
  isDeleting: boolean;
  isDeleted: boolean;
}

export interface HeldSession {
  readonly id: string;
  readonly key: string;
  isAuthorized: boolean;
}

/** All that was acknowledged. */
export interface ClusterLedger {
  readonly applications: Held[];
  readonly sessions: HeldSession[];
  /** Keys that were replaced, deleted or disabled, or whose sessions were revoked. */
  readonly endedKeys: string[];
}

export const createClusterLedger = (): ClusterLedger => ({
  applications: [],
  sessions: [],
  endedKeys: [],
});

export const nameFor = (number: number) => `shop ${number}`;
export const numberIn = (name: string) => Number(name.split(" ")[1]);

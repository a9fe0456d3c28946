/** The state of an application according to acknowledged writes. It has one owner. */
export interface Held {
  readonly id: string;
  /** The valid key. Absent while a change of it is pending or has no response. */
  key: string | undefined;
  /** The number of sent changes of the key, including deletion. */
  keyChanges: number;
  /** The number in the last acknowledged name and in the last sent name. */
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

/** All acknowledged writes. */
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

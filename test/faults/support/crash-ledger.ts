/** The state of an application according to its responses. */
export interface Account {
  readonly id: string;
  name: string;
  /** Unknown if the response was lost. */
  key: string | undefined;
  /** Revoked keys. */
  readonly endedKeys: string[];
  isDeleted: boolean;
  /** The number of changes by kind. */
  readonly changes: Record<string, number>;
  /** The last request if it had no response: it may have taken effect. */
  doubt?: { readonly kind: string; readonly name?: string } | undefined;
}

/** The state of a session according to its responses. */
export interface SessionAccount {
  readonly id: string;
  readonly nonce: string;
  /** Whether authorization was acknowledged. Without a response it may have succeeded too. */
  isAuthorized: boolean;
}

/** All acknowledged writes. */
export interface CrashLedger {
  readonly applications: Account[];
  readonly sessions: SessionAccount[];
}

export function note(account: Account, kind: string): void {
  account.changes[kind] = (account.changes[kind] ?? 0) + 1;
}

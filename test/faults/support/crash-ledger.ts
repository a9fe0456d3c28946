/** An application as those who were answered know it. */
export interface Account {
  readonly id: string;
  name: string;
  /** Unknown where the answer that told it was lost. */
  key: string | undefined;
  /** Keys that do not work any more. */
  readonly endedKeys: string[];
  isDeleted: boolean;
  /** How often each kind of change was made. */
  readonly changes: Record<string, number>;
  /** What was asked for last and not answered: it may have been done. */
  doubt?: { readonly kind: string; readonly name?: string } | undefined;
}

/** A session as those who were answered know it. */
export interface SessionAccount {
  readonly id: string;
  readonly nonce: string;
  /** Whether that was answered; where it was not, it may be all the same. */
  isAuthorized: boolean;
}

/** All that was acknowledged. */
export interface CrashLedger {
  readonly applications: Account[];
  readonly sessions: SessionAccount[];
}

export function note(account: Account, kind: string): void {
  account.changes[kind] = (account.changes[kind] ?? 0) + 1;
}

/** What a check has found. */
export interface Finding {
  /** What was looked at. */
  readonly check: string;
  readonly state: "ok" | "warn" | "fail";
  readonly found: string;
  /** What to do about it. */
  readonly mend?: string;
}

export const ok = (check: string, found: string): Finding => ({ check, state: "ok", found });

export const warn = (check: string, found: string, mend: string): Finding => ({
  check,
  state: "warn",
  found,
  mend,
});

export const fail = (check: string, found: string, mend: string): Finding => ({
  check,
  state: "fail",
  found,
  mend,
});

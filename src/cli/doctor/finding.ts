/** The result of a check. */
export interface Finding {
  /** The name of the check. */
  readonly check: string;
  readonly state: "ok" | "warn" | "fail";
  readonly found: string;
  /** How to fix it. */
  readonly fix?: string;
}

export const ok = (check: string, found: string): Finding => ({ check, state: "ok", found });

export const warn = (check: string, found: string, fix: string): Finding => ({
  check,
  state: "warn",
  found,
  fix,
});

export const fail = (check: string, found: string, fix: string): Finding => ({
  check,
  state: "fail",
  found,
  fix,
});

import type { Restrictions } from "./store.js";

/** Whether the keys of an application may not be used from everywhere. */
export function isRestricted({ allowedOrigins, allowedCidrs }: Restrictions): boolean {
  return allowedOrigins.length > 0 || allowedCidrs.length > 0;
}

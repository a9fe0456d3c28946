/** What can be measured: who the key belongs to, and whether it may do something. */
export const benchMethods = ["whoami", "check"] as const;
export type BenchMethod = (typeof benchMethods)[number];

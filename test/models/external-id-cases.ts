import type { ExternalIdOptions, Operation } from "./external-ids.js";

/** `a` and `b` have these values at the start, `mortal` has `a` and an expiry. */
export const [absent, a, b] = [{}, { is: "live", value: "a" }, { is: "live", value: "b" }] as const;
export const mortal = { ...a, expires: true };

export const create = (application: number, value: string): Operation => ({
  kind: "create",
  application,
  value,
});
export const rename = (application: number, value: string): Operation => ({
  kind: "rename",
  application,
  value,
});
export const remove = (application: number): Operation => ({ kind: "delete", application });
export const update = (application: number): Operation => ({ kind: "update", application });
export const extend = (application: number, evenIfExpired = false): Operation => ({
  kind: "extend",
  application,
  evenIfExpired,
});
export const withKey = (operation: Operation): Operation => ({ ...operation, hasKey: true });

export const twoCreates: ExternalIdOptions = {
  applications: [absent, absent],
  operations: [create(0, "a"), create(1, "a")],
};
export const renameThereAndBack: ExternalIdOptions = {
  applications: [a, absent],
  operations: [rename(0, "b"), rename(0, "a"), create(1, "a")],
};
export const lateExtension: ExternalIdOptions = {
  applications: [mortal, absent],
  operations: [extend(0, true), create(1, "a")],
  canExpire: true,
};

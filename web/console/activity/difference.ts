import { equals } from "@bufbuild/protobuf";
import { timestampDate } from "@bufbuild/protobuf/wkt";
import { type AccessRule, AccessRuleSchema } from "../../../gen/latchkey/v1/access_rule_pb.js";
import type { CredentialState } from "../../../gen/latchkey/v1/event_service_pb.js";

/** What went and what came of some part of a credential. */
export interface Change<Value> {
  readonly removed: readonly Value[];
  readonly added: readonly Value[];
}

type State = CredentialState | undefined;

const parts: readonly (readonly [label: string, read: (state: CredentialState) => string[]])[] = [
  ["Name", ({ name }) => present(name)],
  ["Status", ({ status }) => present(status)],
  ["Permissions", ({ permissions }) => permissions],
  ["Origins", ({ allowedOrigins }) => allowedOrigins],
  ["Networks", ({ allowedCidrs }) => allowedCidrs],
  ["Session quota", ({ sessionQuota }) => present(sessionQuota?.toString())],
  ["End", ({ expiresAt }) => (expiresAt ? [timestampDate(expiresAt).toLocaleString()] : [])],
];

/** The parts in which two states of a credential differ. */
export function differences(
  before: State,
  after: State,
): readonly (readonly [label: string, change: Change<string>])[] {
  return parts
    .map(([label, read]) => {
      const change = changeOf(
        before ? read(before) : [],
        after ? read(after) : [],
        (one, other) => one === other,
      );
      return [label, change] as const;
    })
    .filter(([, change]) => isChange(change));
}

/** The rules that went and came. One that was changed is among both. */
export function ruleDifference(before: State, after: State): Change<AccessRule> {
  return changeOf(before?.rules ?? [], after?.rules ?? [], (one, other) =>
    equals(AccessRuleSchema, one, other),
  );
}

export function isChange({ removed, added }: Change<unknown>): boolean {
  return removed.length + added.length > 0;
}

function changeOf<Value>(
  before: readonly Value[],
  after: readonly Value[],
  isSame: (one: Value, other: Value) => boolean,
): Change<Value> {
  return {
    removed: before.filter((value) => !after.some((other) => isSame(value, other))),
    added: after.filter((value) => !before.some((other) => isSame(value, other))),
  };
}

function present(text: string | undefined): string[] {
  return text === undefined ? [] : [text];
}

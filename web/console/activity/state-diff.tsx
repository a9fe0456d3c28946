import { equals } from "@bufbuild/protobuf";
import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { ReactNode } from "react";
import { type AccessRule, AccessRuleSchema } from "../../../gen/latchkey/v1/access_rule_pb.js";
import type { CredentialState } from "../../../gen/latchkey/v1/event_service_pb.js";
import { RuleSummary } from "../rules/grants.js";

interface StateDiffProps {
  readonly before: CredentialState | undefined;
  readonly after: CredentialState | undefined;
}

/** The changes between two states of a credential. */
export function StateDiff({ before, after }: StateDiffProps) {
  const changed = diffFields(before, after);
  const rules = diffRules(before, after);
  if (changed.length === 0 && !isChange(rules)) {
    return <p className="muted">No changes.</p>;
  }
  return (
    <section className="difference" aria-label="Changes">
      <h2>Changes</h2>
      {changed.map(([label, change]) => (
        <FieldChange
          key={label}
          label={label}
          change={change}
          show={(text) => <code>{text}</code>}
        />
      ))}
      {isChange(rules) && (
        <FieldChange label="Rules" change={rules} show={(rule) => <RuleSummary rule={rule} />} />
      )}
    </section>
  );
}

interface FieldChangeProps<Value> {
  readonly label: string;
  readonly change: Change<Value>;
  show(value: Value): ReactNode;
}

function FieldChange<Value>({ label, change: { removed, added }, show }: FieldChangeProps<Value>) {
  return (
    <div>
      <h3>{label}</h3>
      <ul>
        {removed.map((value, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: events are immutable.
          <li key={index} data-change="removed">
            <span className="visually-hidden">removed</span>
            {show(value)}
          </li>
        ))}
        {added.map((value, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: events are immutable.
          <li key={index} data-change="added">
            <span className="visually-hidden">added</span>
            {show(value)}
          </li>
        ))}
      </ul>
    </div>
  );
}

interface Change<Value> {
  readonly removed: readonly Value[];
  readonly added: readonly Value[];
}

type State = CredentialState | undefined;

const parts: readonly (readonly [label: string, read: (state: CredentialState) => string[]])[] = [
  ["Name", ({ name }) => optional(name)],
  ["Status", ({ status }) => optional(status)],
  ["Permissions", ({ permissions }) => permissions],
  ["Origins", ({ allowedOrigins }) => allowedOrigins],
  ["Networks", ({ allowedCidrs }) => allowedCidrs],
  ["Session quota", ({ sessionQuota }) => optional(sessionQuota?.toString())],
  ["Expires", ({ expiresAt }) => (expiresAt ? [timestampDate(expiresAt).toLocaleString()] : [])],
];

function diffFields(
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

/** A changed rule is both removed and added. */
function diffRules(before: State, after: State): Change<AccessRule> {
  return changeOf(before?.rules ?? [], after?.rules ?? [], (one, other) =>
    equals(AccessRuleSchema, one, other),
  );
}

function isChange({ removed, added }: Change<unknown>): boolean {
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

function optional(text: string | undefined): string[] {
  return text === undefined ? [] : [text];
}

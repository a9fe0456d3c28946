import { type DescField, equals } from "@bufbuild/protobuf";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import type { ReactNode } from "react";
import { type AccessRule, AccessRuleSchema } from "../../../gen/latchkey/v1/access_rule_pb.js";
import {
  type CredentialState,
  CredentialStateSchema,
} from "../../../gen/latchkey/v1/event_service_pb.js";
import { RuleSummary } from "../rules/grants.js";
import { formatExact } from "../ui/time.js";
import { labelOf } from "../validation/field-errors.js";

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

/** The changed fields except the rules. */
function diffFields(
  before: State,
  after: State,
): readonly (readonly [label: string, change: Change<string>])[] {
  return CredentialStateSchema.fields
    .filter((field) => field !== CredentialStateSchema.field.rules)
    .map((field) => {
      const change = changeOf(
        valuesOf(field, before),
        valuesOf(field, after),
        (one, other) => one === other,
      );
      return [labelOf(field.name), change] as const;
    })
    .filter(([, change]) => isChange(change));
}

function valuesOf({ fieldKind, localName }: DescField, state: State): string[] {
  const value: unknown = state?.[localName as keyof CredentialState];
  if (value === undefined) {
    return [];
  }
  switch (fieldKind) {
    case "list":
      return value as string[];
    case "map":
      return Object.entries(value as Record<string, string>).map((pair) => pair.join("="));
    case "message":
      return [formatExact(value as Timestamp)];
    default:
      return [String(value)];
  }
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

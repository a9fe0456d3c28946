import type { ReactNode } from "react";
import type { CredentialState } from "../../../gen/latchkey/v1/event_service_pb.js";
import { RuleSummary } from "../ui/grants.js";
import { type Change, differences, isChange, ruleDifference } from "./difference.js";

interface StateDifferenceProps {
  readonly before: CredentialState | undefined;
  readonly after: CredentialState | undefined;
}

/** What a credential was before and is not any more, and what it became. */
export function StateDifference({ before, after }: StateDifferenceProps) {
  const changed = differences(before, after);
  const rules = ruleDifference(before, after);
  if (changed.length === 0 && !isChange(rules)) {
    return <p className="muted">Nothing of what it is or may do was changed.</p>;
  }
  return (
    <section className="difference" aria-label="What changed">
      <h2>What changed</h2>
      {changed.map(([label, change]) => (
        <Part key={label} label={label} change={change} show={(text) => <code>{text}</code>} />
      ))}
      {isChange(rules) && (
        <Part label="Rules" change={rules} show={(rule) => <RuleSummary rule={rule} />} />
      )}
    </section>
  );
}

interface PartProps<Value> {
  readonly label: string;
  readonly change: Change<Value>;
  show(value: Value): ReactNode;
}

function Part<Value>({ label, change: { removed, added }, show }: PartProps<Value>) {
  return (
    <div>
      <h3>{label}</h3>
      <ul>
        {removed.map((value, place) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: what is shown of an event never changes.
          <li key={place} data-change="removed">
            <span className="unseen">removed</span>
            {show(value)}
          </li>
        ))}
        {added.map((value, place) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: what is shown of an event never changes.
          <li key={place} data-change="added">
            <span className="unseen">added</span>
            {show(value)}
          </li>
        ))}
      </ul>
    </div>
  );
}

import type { AccessRule } from "../../../gen/latchkey/v1/access_rule_pb.js";
import { inWords } from "../../common/words.js";
import { Badge, Chips } from "../ui/display.js";
import { useKnownPermissions } from "./known-permissions.js";
import { sortByPriority } from "./rule-list.js";

interface GrantsProps {
  readonly permissions: readonly string[];
  readonly rules: readonly AccessRule[];
}

/** Direct permissions, and rules in evaluation order. */
export function Grants({ permissions, rules }: GrantsProps) {
  if (permissions.length === 0 && rules.length === 0) {
    return <p className="muted">No permissions.</p>;
  }
  return (
    <>
      {permissions.length > 0 && <PermissionList names={permissions} />}
      {rules.length > 0 && (
        <ol className="rules" aria-label="Rules, in evaluation order">
          {sortByPriority(rules).map((rule) => (
            <li key={rules.indexOf(rule)}>
              <RuleSummary rule={rule} />
            </li>
          ))}
        </ol>
      )}
    </>
  );
}

/** Permissions with their meaning, if the service knows them. */
function PermissionList({ names }: { readonly names: readonly string[] }) {
  const known = useKnownPermissions();
  return (
    <ul className="permission-list">
      {names.map((name) => (
        <li key={name}>
          <code>{name}</code>
          <span className="hint">{known?.find((one) => one.name === name)?.allows}</span>
        </li>
      ))}
    </ul>
  );
}

export function RuleSummary({ rule }: { readonly rule: AccessRule }) {
  const { priority, description, container, conditions, transform, permissions } = rule;
  return (
    <div className="rule-summary">
      <span className="rule-priority" title="Priority">
        {priority}
      </span>
      <div>
        {description !== undefined && <p>{description}</p>}
        <p className="muted">
          {container !== undefined && (
            <>
              in <code>{container}</code>
            </>
          )}
          {conditions.map(({ attribute, operator, value }, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: conditions have no id and keep their order.
            <span key={index}>
              {index > 0 && " and "}
              {attribute} {inWords(operator)} <code>{value}</code>
            </span>
          ))}
          {container === undefined && conditions.length === 0 && "all tokens"}
        </p>
        <Chips names={permissions} />
      </div>
      <Badge>{transform}</Badge>
    </div>
  );
}

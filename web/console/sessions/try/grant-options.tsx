import { PermissionInput } from "../../rules/permission-input.js";
import { RuleEditor } from "../../rules/rule-editor.js";
import { Select } from "../../ui/select.js";
import { errorsOfList, grantRequired } from "../../validation/field-errors.js";
import type { FieldErrors } from "../../validation/validate.js";
import type { Grant } from "./demo.js";

interface GrantOptionsProps {
  readonly grant: Grant;
  readonly errors: FieldErrors;
  onChange(grant: Grant): void;
}

const lifetimes = [
  { value: "", label: "unchanged" },
  { value: "5", label: "in 5 minutes" },
  { value: "15", label: "in 15 minutes" },
  { value: "60", label: "in 1 hour" },
];

/** Edits the grants of the backend to the session. */
export function GrantOptions({ grant, errors, onChange }: GrantOptionsProps) {
  const { permissions, rules, lifetime } = grant;
  return (
    <details className="grant-options">
      <summary>Choose permissions, rules and expiry</summary>
      <PermissionInput
        label="Direct permissions"
        hint="Granted without a rule."
        value={permissions}
        onChange={(next) => onChange({ ...grant, permissions: next })}
        kind="session"
        errors={[
          ...(errors.request ? [grantRequired] : []),
          ...errorsOfList(errors, "permissions", permissions),
        ]}
      />
      <RuleEditor
        kind="session"
        rules={rules}
        onChange={(next) => onChange({ ...grant, rules: next })}
        errors={errors}
      />
      <Select
        label="Expires"
        options={lifetimes}
        value={lifetime}
        onChange={(next) => onChange({ ...grant, lifetime: next })}
      />
    </details>
  );
}

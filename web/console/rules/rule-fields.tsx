import type { AccessRule } from "../../../gen/latchkey/v1/access_rule_pb.js";
import { TextField } from "../ui/fields.js";
import { RadioGroup } from "../ui/radio-group.js";
import { errorsOfList } from "../validation/field-errors.js";
import type { FieldErrors } from "../validation/validate.js";
import { ConditionList } from "./condition-list.js";
import { PermissionInput } from "./permission-input.js";
import { type RuleKind, transforms } from "./rule-list.js";

interface RuleFieldsProps {
  readonly rule: AccessRule;
  readonly kind: RuleKind;
  /** By path within the rule. */
  readonly errors: FieldErrors;
  onChange(fields: Partial<AccessRule>): void;
}

/** The fields of a rule. `data-field` identifies visited fields. */
export function RuleFields({ rule, kind, errors, onChange }: RuleFieldsProps) {
  return (
    <>
      <div data-field="description">
        <TextField
          label="Description"
          hint="What the rule is for."
          errors={errors.description}
          spellCheck
          value={rule.description ?? ""}
          onChange={(text) => onChange({ description: text === "" ? undefined : text })}
        />
      </div>
      {kind === "session" ? (
        <ConditionList
          conditions={rule.conditions}
          errors={errors}
          onChange={(conditions) => onChange({ conditions })}
        />
      ) : (
        <Container rule={rule} kind={kind} errors={errors} onChange={onChange} />
      )}
      <div data-field="permissions">
        <PermissionInput
          label="Permissions of the rule"
          hint="Granted on these tokens. Press Enter or a comma after each name."
          kind={kind}
          value={rule.permissions}
          errors={errorsOfList(errors, "permissions", rule.permissions)}
          onChange={(permissions) => onChange({ permissions })}
        />
      </div>
      <RadioGroup
        legend="Transform"
        variant="cards"
        options={transformOptions}
        value={rule.transform}
        errors={errors.transform}
        onChange={(transform) => onChange({ transform })}
      />
    </>
  );
}

function Container({ rule, kind, errors, onChange }: RuleFieldsProps) {
  const rest = kind === "management" ? " Leave empty for all tokens." : "";
  return (
    <div data-field="container">
      <TextField
        label="Container"
        hint={`The tokens (vaulted data items) in this container and below: /pci/ covers /pci/high/ but not /pcix/.${rest}`}
        errors={errors.container}
        placeholder="/pci/"
        autoCapitalize="none"
        value={rule.container ?? ""}
        onChange={(text) => onChange({ container: text === "" ? undefined : text })}
      />
    </div>
  );
}

const meanings: Readonly<Record<string, string>> = {
  redact: "Hides the value.",
  mask: "Shows the mask, or nothing if there is none.",
  reveal: "Shows the plain value.",
};

/** How much of a token the rule reveals. */
const transformOptions = transforms.map((transform) => ({
  value: transform,
  label: transform,
  hint: meanings[transform],
}));

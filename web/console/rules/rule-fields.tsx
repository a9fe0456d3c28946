import { useId } from "react";
import type { AccessRule } from "../../../gen/latchkey/v1/access_rule_pb.js";
import { Field } from "../ui/fields.js";
import { errorsOfNames } from "../validation/field-errors.js";
import type { FieldErrors } from "../validation/validate.js";
import { ConditionList } from "./condition-list.js";
import { PermissionInput } from "./permission-input.js";
import { type RuleKind, transforms } from "./rule-list.js";

interface RuleFieldsProps {
  readonly rule: AccessRule;
  readonly kind: RuleKind;
  /** By the paths within the rule. */
  readonly errors: FieldErrors;
  readonly suggestions: readonly string[];
  onChange(fields: Partial<AccessRule>): void;
}

/** What a rule says, to be changed. Each field is marked with its path, so that it is known which was visited. */
export function RuleFields({ rule, kind, errors, suggestions, onChange }: RuleFieldsProps) {
  return (
    <>
      <div data-field="description">
        <Field label="Description" hint="What the rule is for." errors={errors.description}>
          {(control) => (
            <input
              {...control}
              value={rule.description ?? ""}
              onChange={({ target }) =>
                onChange({ description: target.value === "" ? undefined : target.value })
              }
            />
          )}
        </Field>
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
          hint="What may be done with these tokens. Enter or a comma takes a name."
          value={rule.permissions}
          suggestions={suggestions}
          errors={errorsOfNames(errors, "permissions", rule.permissions)}
          onChange={(permissions) => onChange({ permissions })}
        />
      </div>
      <TransformChoice
        value={rule.transform}
        errors={errors.transform}
        onChange={(transform) => onChange({ transform })}
      />
    </>
  );
}

function Container({ rule, kind, errors, onChange }: Omit<RuleFieldsProps, "suggestions">) {
  const rest = kind === "management" ? " Empty means everything." : "";
  return (
    <div data-field="container">
      <Field
        label="Container"
        hint={`Its tokens, with all below it: /pci/ covers /pci/high/ and not /pcix/.${rest}`}
        errors={errors.container}
      >
        {(control) => (
          <input
            {...control}
            value={rule.container ?? ""}
            placeholder="/pci/"
            autoCapitalize="none"
            autoComplete="off"
            spellCheck={false}
            onChange={({ target }) =>
              onChange({ container: target.value === "" ? undefined : target.value })
            }
          />
        )}
      </Field>
    </div>
  );
}

/** What each does, for people. */
const meanings: Readonly<Record<string, string>> = {
  redact: "Leaves the data out.",
  mask: "Shows the masked value, or nothing where there is no mask.",
  reveal: "Shows the plain value.",
};

interface TransformChoiceProps {
  readonly value: string;
  onChange(transform: string): void;
  readonly errors: readonly string[] | undefined;
}

/** How much of a token a rule shows. */
function TransformChoice({ value, onChange, errors = [] }: TransformChoiceProps) {
  const name = useId();
  return (
    <fieldset className="transforms">
      <legend>How much is shown</legend>
      <div>
        {transforms.map((transform) => (
          <label key={transform}>
            <input
              type="radio"
              name={name}
              checked={transform === value}
              onChange={() => onChange(transform)}
            />
            <span>
              {transform}
              <span className="hint">{meanings[transform]}</span>
            </span>
          </label>
        ))}
      </div>
      {errors.length > 0 && <p className="field-error">{errors.join(" · ")}</p>}
    </fieldset>
  );
}

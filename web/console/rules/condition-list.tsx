import { Plus, X } from "lucide-react";
import { useRef } from "react";
import type { AccessRule, AccessRuleCondition } from "../../../gen/latchkey/v1/access_rule_pb.js";
import { inWords } from "../../common/words.js";
import { Button, IconButton } from "../ui/buttons.js";
import { FieldErrorText, TextField } from "../ui/fields.js";
import { type Option, Select } from "../ui/select.js";
import type { FieldErrors } from "../validation/validate.js";
import { attributes, newCondition, operators } from "./rule-list.js";

type Conditions = AccessRule["conditions"];

interface ConditionListProps {
  readonly conditions: Conditions;
  onChange(conditions: Conditions): void;
  readonly errors: FieldErrors;
}

/** The conditions of a rule. A token must meet all of them. */
export function ConditionList({ conditions, onChange, errors }: ConditionListProps) {
  const addButton = useRef<HTMLButtonElement>(null);

  function remove(index: number): void {
    onChange(conditions.toSpliced(index, 1));
    // The pressed button is gone.
    addButton.current?.focus();
  }

  return (
    <fieldset className="conditions">
      <legend>Conditions (a token, a vaulted data item, must meet all of them)</legend>
      {conditions.map((condition, index) => (
        <ConditionFields
          // biome-ignore lint/suspicious/noArrayIndexKey: conditions have no id and keep their order.
          key={index}
          condition={condition}
          path={`conditions[${index}]`}
          errors={errors}
          onChange={(changed) => onChange(conditions.with(index, changed))}
          onRemove={() => remove(index)}
        />
      ))}
      <div>
        <Button
          ref={addButton}
          icon={Plus}
          onClick={() => onChange([...conditions, newCondition()])}
        >
          Add condition
        </Button>
      </div>
      <FieldErrorText label="Conditions" errors={errors.conditions} />
    </fieldset>
  );
}

interface ConditionFieldsProps {
  readonly condition: AccessRuleCondition;
  readonly path: string;
  readonly errors: FieldErrors;
  onChange(condition: AccessRuleCondition): void;
  onRemove(): void;
}

function ConditionFields({ condition, path, errors, onChange, onRemove }: ConditionFieldsProps) {
  const { attribute, operator, value } = condition;
  return (
    <div className="condition">
      <Select
        label="Attribute"
        options={attributeOptions}
        value={attribute}
        errors={errors[`${path}.attribute`]}
        onChange={(attribute) => onChange({ ...condition, attribute })}
      />
      <Select
        label="Operator"
        options={operatorOptions}
        value={operator}
        errors={errors[`${path}.operator`]}
        onChange={(operator) => onChange({ ...condition, operator })}
      />
      <div data-field={`${path}.value`}>
        <TextField
          label="Value"
          errors={errors[`${path}.value`]}
          value={value}
          onChange={(changed) => onChange({ ...condition, value: changed })}
        />
      </div>
      <IconButton icon={X} label="Remove condition" onClick={onRemove} />
    </div>
  );
}

function toOptions(values: readonly string[]): readonly Option[] {
  return values.map((value) => ({ value, label: inWords(value) }));
}

const attributeOptions = toOptions(attributes);
const operatorOptions = toOptions(operators);

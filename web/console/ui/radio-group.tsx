import { type ReactNode, useId } from "react";
import { FieldMessages } from "./fields.js";

interface RadioOption<Value extends string> {
  readonly value: Value;
  readonly label: string;
  readonly hint?: string | undefined;
}

interface RadioGroupProps<Value extends string> {
  readonly legend: string;
  readonly options: readonly RadioOption<Value>[];
  readonly value: string;
  onChange(value: Value): void;
  readonly variant?: "list" | "inline" | "cards";
  readonly hint?: string;
  readonly errors?: readonly string[] | undefined;
  /** The fields of the chosen option. */
  readonly children?: ReactNode;
}

/** A choice between a few options that are all visible. */
export function RadioGroup<Value extends string>(props: RadioGroupProps<Value>) {
  const { legend, options, value, onChange, variant = "list", hint, errors, children } = props;
  const name = useId();
  const messages = `${name}-messages`;
  const hasMessages = hint !== undefined || (errors ?? []).length > 0;
  return (
    <fieldset className="options" aria-describedby={hasMessages ? messages : undefined}>
      <legend>{legend}</legend>
      <div className="radio-group" data-variant={variant}>
        {options.map((option) => (
          <label key={option.value}>
            <input
              type="radio"
              name={name}
              checked={option.value === value}
              onChange={() => onChange(option.value)}
            />
            <span>
              {option.label}
              {option.hint !== undefined && <span className="hint">{option.hint}</span>}
            </span>
          </label>
        ))}
      </div>
      <FieldMessages id={messages} label={legend} hint={hint} errors={errors} />
      {children}
    </fieldset>
  );
}

import { type ComponentProps, type ReactNode, type Ref, useId } from "react";

/** The texts of a control. */
export interface FieldText {
  readonly label: string;
  readonly hint?: ReactNode;
  readonly errors?: readonly string[] | undefined;
}

/** Links a control to its label, hint and errors. */
interface ControlProps {
  readonly id: string;
  readonly "aria-describedby": string | undefined;
  readonly "aria-invalid": true | undefined;
}

interface FieldProps extends FieldText {
  children(props: ControlProps): ReactNode;
}

/** A control with label, hint and errors. */
export function Field({ label, hint, errors = [], children }: FieldProps) {
  const id = useId();
  const messages = `${id}-messages`;
  const isInvalid = errors.length > 0;
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children({
        id,
        "aria-describedby": hint !== undefined || isInvalid ? messages : undefined,
        "aria-invalid": isInvalid || undefined,
      })}
      <FieldMessages id={messages} label={label} hint={hint} errors={errors} />
    </div>
  );
}

interface FieldMessagesProps extends FieldText {
  readonly id: string;
}

/** The hint and the errors below a control. */
export function FieldMessages({ id, label, hint, errors = [] }: FieldMessagesProps) {
  return hint === undefined && errors.length === 0 ? null : (
    <div id={id}>
      {hint !== undefined && <p className="hint">{hint}</p>}
      <FieldErrorText label={label} errors={errors} />
    </div>
  );
}

/** The errors of a control or of a group of them. */
export function FieldErrorText({ label, errors = [] }: Pick<FieldText, "label" | "errors">) {
  return errors.length === 0 ? null : (
    <p className="field-error">{errors.map((error) => sentenceOf(label, error)).join(" · ")}</p>
  );
}

/** `Name is required` for `is required`, which the service returns beside the name of the field. */
function sentenceOf(label: string, error: string): string {
  return /^(is|must) /.test(error) ? `${label} ${error}` : error;
}

/** The attributes that callers may set. */
type InputAttributes = Pick<
  ComponentProps<"input">,
  | "autoCapitalize"
  | "inputMode"
  | "maxLength"
  | "min"
  | "placeholder"
  | "required"
  | "spellCheck"
  | "step"
>;

interface TextFieldProps extends FieldText, InputAttributes {
  readonly type?: "text" | "number" | "datetime-local";
  /** The height of an input for several lines. */
  readonly rows?: number;
  readonly value: string;
  onChange(value: string): void;
}

/** An input for text, a number or a time. Most texts are names, so spelling is not checked. */
export function TextField({ label, hint, errors, rows, onChange, ...rest }: TextFieldProps) {
  // A text area has all attributes that are passed here.
  const Control = (rows === undefined ? "input" : "textarea") as "input";
  return (
    <Field label={label} hint={hint} errors={errors}>
      {(control) => (
        <Control
          autoComplete="off"
          spellCheck={false}
          {...rest}
          {...control}
          {...(rows !== undefined && { rows })}
          onChange={({ target }) => onChange(target.value)}
        />
      )}
    </Field>
  );
}

interface CheckboxProps extends Omit<ComponentProps<"input">, "type" | "onChange"> {
  /** The text beside the box. Without it, pass `aria-label`. */
  readonly label?: ReactNode;
  /** Neither on nor off, for a list of which a part is selected. */
  readonly isMixed?: boolean;
  onChange(isChecked: boolean): void;
}

/** A choice between on and off. */
export function Checkbox({ label, isMixed = false, onChange, ...rest }: CheckboxProps) {
  const id = useId();
  const box = (
    <input
      {...rest}
      id={id}
      type="checkbox"
      ref={(element) => {
        if (element) {
          element.indeterminate = isMixed;
        }
      }}
      onChange={({ target }) => onChange(target.checked)}
    />
  );
  return label === undefined ? (
    box
  ) : (
    <span className="check">
      {box}
      <label htmlFor={id}>{label}</label>
    </span>
  );
}

interface KeyFieldProps {
  readonly label: string;
  readonly hint: string;
  readonly placeholder: string;
  readonly isRequired?: boolean;
  readonly errors?: readonly string[] | undefined;
  readonly value: string;
  onChange(key: string): void;
  readonly ref?: Ref<HTMLInputElement>;
}

/** A password input for a key. */
export function KeyField({ label, hint, errors, isRequired = false, ...rest }: KeyFieldProps) {
  const { placeholder, value, onChange, ref } = rest;
  return (
    <Field label={label} hint={hint} errors={errors}>
      {(control) => (
        <input
          {...control}
          ref={ref}
          type="password"
          autoComplete="off"
          spellCheck={false}
          required={isRequired}
          placeholder={placeholder}
          value={value}
          onChange={({ target }) => onChange(withoutQuotes(target.value))}
        />
      )}
    </Field>
  );
}

/** A key may be copied with the quotation marks around it. */
function withoutQuotes(text: string): string {
  return text.replace(/^[\s"'`]+|[\s"'`]+$/g, "");
}

interface ConfirmTextProps {
  /** The text that the user must type. */
  readonly text: string;
  readonly typed: string;
  onType(typed: string): void;
}

/** A field that confirms an action which cannot be undone. */
export function ConfirmText({ text, typed, onType }: ConfirmTextProps) {
  return <TextField label={`Type “${text}” to confirm`} value={typed} onChange={onType} />;
}

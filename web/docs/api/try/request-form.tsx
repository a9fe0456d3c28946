import { type ReactNode, useId } from "react";
import { json, printValue } from "../../../../src/contract/samples/call.js";
import type { Operation, Parameter } from "../operations.js";

/** The input of the user. */
export interface RequestValues {
  readonly key: string;
  readonly clientKey: string;
  readonly parameters: Readonly<Record<string, string>>;
  readonly body: BodyText;
}

interface BodyText {
  readonly text: string;
  /** The parsed text. */
  readonly value?: unknown;
  /** Why it cannot be parsed. */
  readonly error?: string | undefined;
}

export function startValues({ body }: Operation): RequestValues {
  const example = body?.examples[0]?.value;
  return {
    key: "",
    clientKey: "",
    parameters: {},
    body: example === undefined ? { text: "" } : toBody(example),
  };
}

function toBody(value: unknown): BodyText {
  return { text: printValue(value, json), value };
}

function parseBody(text: string): BodyText {
  try {
    return text.trim() === "" ? { text } : { text, value: JSON.parse(text) };
  } catch (error) {
    return { text, error: (error as SyntaxError).message };
  }
}

interface RequestFormProps {
  readonly operation: Operation;
  readonly values: RequestValues;
  readonly isPending: boolean;
  onChange(values: RequestValues): void;
  onSend(): void;
}

/** The key, the parameters and the body of a call. */
export function RequestForm({ operation, values, isPending, onChange, onSend }: RequestFormProps) {
  const { keyHeader, clientKeyHeader, parameters, body } = operation;
  return (
    <form
      className="try-form"
      onSubmit={(event) => {
        event.preventDefault();
        onSend();
      }}
    >
      {keyHeader && (
        <KeyInput
          label={clientKeyHeader ? "Key of the gateway" : "Key"}
          header={keyHeader}
          value={values.key}
          onChange={(key) => onChange({ ...values, key })}
        />
      )}
      {clientKeyHeader && (
        <KeyInput
          label="Key of the client"
          header={clientKeyHeader}
          value={values.clientKey}
          onChange={(clientKey) => onChange({ ...values, clientKey })}
        />
      )}
      {parameters.map((parameter) => (
        <ParameterInput
          key={parameter.name}
          parameter={parameter}
          value={values.parameters[parameter.name] ?? ""}
          onChange={(value) =>
            onChange({
              ...values,
              parameters: { ...values.parameters, [parameter.name]: value },
            })
          }
        />
      ))}
      {body && (
        <BodyInput
          body={body}
          value={values.body}
          onChange={(text) => onChange({ ...values, body: text })}
        />
      )}
      <div className="try-send">
        <button
          type="submit"
          className="send"
          disabled={isPending || values.body.error !== undefined}
        >
          {isPending ? "Sending…" : "Send"}
        </button>
        <p className="hint">Sends a real request to {location.host}.</p>
      </div>
    </form>
  );
}

interface KeyInputProps {
  readonly label: string;
  readonly header: string;
  readonly value: string;
  onChange(value: string): void;
}

function KeyInput({ label, header, value, onChange }: KeyInputProps) {
  return (
    <Field label={label} note={header}>
      {(id) => (
        <input
          id={id}
          type="password"
          autoComplete="off"
          spellCheck={false}
          placeholder="lk_…"
          // Not a controlled input: React would write the key into an attribute.
          ref={(input) => {
            if (input && input.value === "") {
              input.value = value;
            }
          }}
          onInput={({ currentTarget }) => onChange(currentTarget.value.trim())}
        />
      )}
    </Field>
  );
}

/** For values in the URL, which may be logged. */
const noKey = {
  pattern: "(?!.*lk_(prv|pub|mgt|ses|non)_).*",
  title: "A key must not be in a URL.",
};

interface ParameterInputProps {
  readonly parameter: Parameter;
  readonly value: string;
  onChange(value: string): void;
}

function ParameterInput({ parameter, value, onChange }: ParameterInputProps) {
  const { name, required, schema } = parameter;
  const choices = schema.type === "boolean" ? ["true", "false"] : schema.enum;
  const [example = ""] = schema.examples ?? schema.items?.examples ?? [];
  const isList = schema.type === "array";
  const note = [parameter.in, isList && "separate with commas", required && "required"];
  return (
    <Field label={<code>{name}</code>} note={note.filter(Boolean).join(", ")}>
      {(id) =>
        choices ? (
          <select
            id={id}
            required={required}
            value={value}
            onChange={({ target }) => onChange(target.value)}
          >
            <option value="">–</option>
            {choices.map((choice) => (
              <option key={choice}>{choice}</option>
            ))}
          </select>
        ) : (
          <input
            id={id}
            type="text"
            autoComplete="off"
            spellCheck={false}
            required={required}
            {...(parameter.in !== "header" && noKey)}
            placeholder={String(example)}
            value={value}
            onChange={({ target }) => onChange(target.value)}
          />
        )
      }
    </Field>
  );
}

interface BodyInputProps {
  readonly body: NonNullable<Operation["body"]>;
  readonly value: BodyText;
  onChange(value: BodyText): void;
}

function BodyInput({ body: { examples, isForm }, value, onChange }: BodyInputProps) {
  return (
    <Field label="Body" note={isForm ? "sent as a form" : "JSON"}>
      {(id) => (
        <>
          {examples.length > 1 && (
            <p className="try-examples">
              {examples.map((example) => (
                <button
                  key={example.name}
                  type="button"
                  onClick={() => onChange(toBody(example.value))}
                >
                  {example.name === "minimal" ? "Minimal example" : "Complete example"}
                </button>
              ))}
            </p>
          )}
          <textarea
            id={id}
            spellCheck={false}
            rows={Math.min(Math.max(value.text.split("\n").length, 4), 20)}
            aria-invalid={value.error !== undefined}
            aria-describedby={value.error === undefined ? undefined : `${id}-error`}
            value={value.text}
            onChange={({ target }) => onChange(parseBody(target.value))}
          />
          {value.error !== undefined && (
            <p id={`${id}-error`} className="try-error">
              Not valid JSON: {value.error}
            </p>
          )}
        </>
      )}
    </Field>
  );
}

interface FieldProps {
  readonly label: ReactNode;
  readonly note: string;
  children(id: string): ReactNode;
}

function Field({ label, note, children }: FieldProps) {
  const id = useId();
  return (
    <div className="try-field">
      <label htmlFor={id}>
        {label} <span className="type">{note}</span>
      </label>
      {children(id)}
    </div>
  );
}

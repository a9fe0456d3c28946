import { useQuery } from "@connectrpc/connect-query";
import type { ChangeEvent } from "react";
import { AccessService } from "../../../../gen/latchkey/v1/access_service_pb.js";
import { CreateApplicationRequestSchema } from "../../../../gen/latchkey/v1/application_service_pb.js";
import { choicesOf } from "../../../../src/contract/fields.js";
import type { ApplicationType } from "../../../../src/contract/grants.js";
import { PermissionInput } from "../../rules/permission-input.js";
import { RuleEditor } from "../../rules/rule-editor.js";
import { Field } from "../../ui/fields.js";
import { errorsOfNames, grantRequired, labelOf } from "../../validation/field-errors.js";
import type { ApplicationForm } from "./application-form.js";
import { type Draft, type DraftField, fieldName, parseLines } from "./draft.js";
import { ExpiryField } from "./expiry-field.js";
import { MetadataField } from "./metadata-field.js";
import "./form.css";

interface ApplicationFieldsProps {
  readonly form: ApplicationForm;
  /** The type can be set only at creation. */
  readonly isNew: boolean;
}

export function ApplicationFields({ form, isNew }: ApplicationFieldsProps) {
  const { draft, shown, change } = form;
  const { data } = useQuery(AccessService.method.listPermissions, { type: draft.type });
  const suggestions = data?.data.map(({ name }) => name) ?? [];
  return (
    <>
      <section className="card" aria-label="Details">
        <TextField form={form} field="name" placeholder="Web shop" />
        <TextField form={form} field="description" hint="What the application is for." rows={2} />
        {isNew && <TypeField type={draft.type} onChange={(type) => change({ type })} />}
        <ExpiryField
          expiry={draft.expiresAt}
          errors={shown.expires_at}
          onChange={(expiresAt) => change({ expiresAt })}
        />
        <TextField
          form={form}
          field="externalId"
          hint="The id of the application in another system, unique in the tenant."
          spellCheck={false}
        />
        <MetadataField
          pairs={draft.metadata}
          errors={shown}
          onChange={(metadata) => change({ metadata })}
        />
      </section>
      <section className="card" aria-labelledby="grants">
        <h2 id="grants">Permissions</h2>
        {shown.request && <p className="field-error">{grantRequired}</p>}
        <PermissionInput
          label="Direct permissions"
          hint="Granted without a rule. Choose from the list, or type a name and press Enter."
          value={draft.permissions}
          suggestions={suggestions}
          errors={errorsOfNames(shown, "permissions", draft.permissions)}
          onChange={(permissions) => change({ permissions })}
        />
        <h3>Rules</h3>
        <RuleEditor
          kind={draft.type}
          rules={draft.rules}
          errors={shown}
          suggestions={suggestions}
          onChange={(rules) => change({ rules })}
        />
      </section>
      <section className="card" aria-labelledby="restrictions">
        <h2 id="restrictions">Restrictions</h2>
        {draft.type === "public" && (
          <LinesField form={form} field="allowedOrigins" placeholder="https://shop.example.com" />
        )}
        <LinesField form={form} field="allowedCidrs" placeholder="203.0.113.0/24" />
      </section>
      {draft.type === "public" && (
        <section className="card" aria-label="Sessions">
          <TextField
            form={form}
            field="sessionQuota"
            hint="Maximum number of open sessions. Leave empty for the default."
            inputMode="numeric"
          />
        </section>
      )}
    </>
  );
}

interface TextFieldProps {
  readonly form: ApplicationForm;
  readonly field: TextDraftField;
  readonly hint?: string;
  readonly errors?: readonly string[] | undefined;
  readonly placeholder?: string;
  readonly inputMode?: "numeric";
  readonly spellCheck?: boolean;
  /** The height of an input for several lines. */
  readonly rows?: number;
}

/** The fields of a draft that are text. */
type TextDraftField = {
  [Name in DraftField]: string extends Draft[Name] ? Name : never;
}[DraftField];

function TextField({ form, field, hint, errors, ...rest }: TextFieldProps) {
  const { draft, shown, change } = form;
  const name = fieldName(field);
  const Control = rest.rows === undefined ? "input" : "textarea";
  return (
    <Field label={labelOf(name)} hint={hint} errors={errors ?? shown[name]}>
      {(props) => (
        <Control
          {...props}
          {...rest}
          autoComplete="off"
          value={draft[field]}
          onChange={({ target }: ChangeEvent<HTMLInputElement | HTMLTextAreaElement>) =>
            change({ [field]: target.value })
          }
        />
      )}
    </Field>
  );
}

/** A list with one value per line. */
function LinesField(props: TextFieldProps) {
  const { form, field } = props;
  return (
    <TextField
      {...props}
      hint="One per line. Leave empty to allow any."
      errors={errorsOfNames(form.shown, fieldName(field), parseLines(form.draft[field]))}
      spellCheck={false}
      rows={2}
    />
  );
}

const types = choicesOf(CreateApplicationRequestSchema.field.type) as readonly ApplicationType[];

const typeHints: Readonly<Record<ApplicationType, string>> = {
  private: "For backends that can keep a secret. It can authorize sessions.",
  public: "For browsers and mobile apps, where the key is public. It can open sessions.",
  management: "For administration.",
};

interface TypeFieldProps {
  readonly type: ApplicationType;
  onChange(type: ApplicationType): void;
}

function TypeField({ type, onChange }: TypeFieldProps) {
  return (
    <fieldset className="options">
      <legend>Type</legend>
      {types.map((choice) => (
        <label key={choice} className="check type-choice">
          <input
            type="radio"
            name="type"
            checked={type === choice}
            onChange={() => onChange(choice)}
          />
          <span>
            {choice} <span className="hint">{typeHints[choice]}</span>
          </span>
        </label>
      ))}
      <p className="hint">The type cannot be changed later.</p>
    </fieldset>
  );
}

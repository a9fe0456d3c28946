import { useQuery } from "@connectrpc/connect-query";
import { AccessService } from "../../../../gen/latchkey/v1/access_service_pb.js";
import { CreateApplicationRequestSchema } from "../../../../gen/latchkey/v1/application_service_pb.js";
import { choicesOf } from "../../../../src/contract/fields.js";
import type { ApplicationType } from "../../../../src/contract/grants.js";
import { PermissionInput } from "../../rules/permission-input.js";
import { RuleEditor } from "../../rules/rule-editor.js";
import { Field } from "../../ui/fields.js";
import { errorsOfNames, grantRequired } from "../../validation/field-errors.js";
import type { FieldErrors } from "../../validation/validate.js";
import type { ApplicationForm } from "./application-form.js";
import { parseLines } from "./draft.js";
import { ExpiryField } from "./expiry-field.js";
import "./form.css";

interface ApplicationFieldsProps {
  readonly form: ApplicationForm;
  /** Type and expiry can be set only at creation. */
  readonly isNew: boolean;
}

export function ApplicationFields({ form, isNew }: ApplicationFieldsProps) {
  const { draft, shown, change } = form;
  const { data } = useQuery(AccessService.method.listPermissions, { type: draft.type });
  const suggestions = data?.data.map(({ name }) => name) ?? [];
  return (
    <>
      <section className="card" aria-label="Details">
        <Field label="Name" errors={shown.name}>
          {(props) => (
            <input
              {...props}
              autoComplete="off"
              value={draft.name}
              placeholder="Web shop"
              onChange={({ target }) => change({ name: target.value })}
            />
          )}
        </Field>
        {isNew && (
          <>
            <TypeField type={draft.type} onChange={(type) => change({ type })} />
            <ExpiryField
              expiry={draft.expiry}
              errors={shown.expires_at}
              onChange={(expiry) => change({ expiry })}
            />
          </>
        )}
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
          <LinesField
            label="Origins"
            example="https://shop.example.com"
            field="allowed_origins"
            errors={shown}
            text={draft.allowedOrigins}
            onChange={(allowedOrigins) => change({ allowedOrigins })}
          />
        )}
        <LinesField
          label="Networks"
          example="203.0.113.0/24"
          field="allowed_cidrs"
          errors={shown}
          text={draft.allowedCidrs}
          onChange={(allowedCidrs) => change({ allowedCidrs })}
        />
      </section>
      {draft.type === "public" && (
        <section className="card" aria-label="Sessions">
          <Field
            label="Session quota"
            hint="Maximum number of open sessions. Leave empty for the default."
            errors={shown.session_quota}
          >
            {(props) => (
              <input
                {...props}
                autoComplete="off"
                inputMode="numeric"
                value={draft.sessionQuota}
                onChange={({ target }) => change({ sessionQuota: target.value.trim() })}
              />
            )}
          </Field>
        </section>
      )}
    </>
  );
}

interface LinesFieldProps {
  readonly label: string;
  readonly example: string;
  /** The field name of the service. */
  readonly field: string;
  readonly errors: FieldErrors;
  readonly text: string;
  onChange(text: string): void;
}

/** A list with one value per line. */
function LinesField({ label, example, field, errors, text, onChange }: LinesFieldProps) {
  return (
    <Field
      label={label}
      hint="One per line. Leave empty to allow any."
      errors={errorsOfNames(errors, field, parseLines(text))}
    >
      {(props) => (
        <textarea
          {...props}
          rows={2}
          spellCheck={false}
          placeholder={example}
          value={text}
          onChange={({ target }) => onChange(target.value)}
        />
      )}
    </Field>
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

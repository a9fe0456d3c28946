import { useQuery } from "@connectrpc/connect-query";
import { AccessService } from "../../../../gen/latchkey/v1/access_service_pb.js";
import { PermissionInput } from "../../rules/permission-input.js";
import { RuleEditor } from "../../rules/rule-editor.js";
import { Field } from "../../ui/field.js";
import { errorsOfNames } from "../../validation/field-errors.js";
import { ExpiryField } from "./expiry-field.js";
import "./form.css";
import { LinesField } from "./lines-field.js";
import { TypeField } from "./type-field.js";
import type { ApplicationForm } from "./use-application-form.js";

interface ApplicationFieldsProps {
  readonly form: ApplicationForm;
  /** Some things are settled when an application is created. */
  readonly isNew: boolean;
}

/** All that a person can say of an application. */
export function ApplicationFields({ form, isNew }: ApplicationFieldsProps) {
  const { draft, shown, change } = form;
  const { data } = useQuery(AccessService.method.listPermissions, { type: draft.type });
  const suggestions = data?.data.map(({ name }) => name) ?? [];
  return (
    <>
      <section className="card" aria-label="About it">
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
        <h2 id="grants">What it may do</h2>
        {shown.request && <p className="field-error">{shown.request.join(" · ")}</p>}
        <PermissionInput
          label="Permissions on everything"
          hint="Choose from the list, or enter others and press Enter."
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
      <section className="card" aria-labelledby="places">
        <h2 id="places">Where its keys may be used from</h2>
        {draft.type === "public" && (
          <LinesField
            label="Web pages, by their origin"
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
            hint="How many sessions may be open at once. Empty means the default of the service."
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

import type { ComponentProps } from "react";
import { CreateApplicationRequestSchema } from "../../../../gen/latchkey/v1/application_service_pb.js";
import { choicesOf } from "../../../../src/contract/fields.js";
import type { ApplicationType } from "../../../../src/contract/grants.js";
import { PermissionInput } from "../../rules/permission-input.js";
import { RuleEditor } from "../../rules/rule-editor.js";
import { Card } from "../../ui/display.js";
import { TextField } from "../../ui/fields.js";
import { RadioGroup } from "../../ui/radio-group.js";
import { errorsOfList, grantRequired, labelOf } from "../../validation/field-errors.js";
import type { ApplicationForm } from "./application-form.js";
import { type Draft, type DraftField, fieldName, parseLines } from "./draft.js";
import { ExpiryField } from "./expiry-field.js";
import { MetadataField } from "./metadata-field.js";

export interface FieldsProps {
  readonly form: ApplicationForm;
}

/** All fields of a new application. */
export function ApplicationFields({ form }: FieldsProps) {
  return (
    <>
      <Card label="Details">
        <TypeField form={form} />
        <DetailFields form={form} />
      </Card>
      <Card label="Permissions">
        <GrantFields form={form} />
      </Card>
      <Card label="Restrictions">
        <RestrictionFields form={form} />
      </Card>
      <Card label="Metadata">
        <MetadataFields form={form} />
      </Card>
    </>
  );
}

export function DetailFields({ form }: FieldsProps) {
  const { draft, shown, change } = form;
  return (
    <>
      <DraftTextField form={form} field="name" placeholder="Web shop" spellCheck />
      <DraftTextField
        form={form}
        field="description"
        hint="What the application is for."
        rows={2}
        spellCheck
      />
      <DraftTextField
        form={form}
        field="externalId"
        hint="The ID of the application in another system, unique in the tenant."
      />
      <ExpiryField
        expiry={draft.expiresAt}
        errors={shown.expires_at}
        onChange={(expiresAt) => change({ expiresAt })}
      />
    </>
  );
}

export function GrantFields({ form }: FieldsProps) {
  const { draft, shown, change } = form;
  return (
    <>
      <PermissionInput
        label="Direct permissions"
        hint="Granted without a rule. Choose from the list, or type a name and press Enter."
        kind={draft.type}
        value={draft.permissions}
        errors={[
          ...(shown.request ? [grantRequired] : []),
          ...errorsOfList(shown, "permissions", draft.permissions),
        ]}
        onChange={(permissions) => change({ permissions })}
      />
      <h3>Rules</h3>
      <RuleEditor
        kind={draft.type}
        rules={draft.rules}
        errors={shown}
        onChange={(rules) => change({ rules })}
      />
    </>
  );
}

/** Only public applications have origins and sessions. */
export function RestrictionFields({ form }: FieldsProps) {
  const isPublic = form.draft.type === "public";
  return (
    <>
      {isPublic && (
        <LinesField form={form} field="allowedOrigins" placeholder="https://shop.example.com" />
      )}
      <LinesField form={form} field="allowedCidrs" placeholder="203.0.113.0/24" />
      {isPublic && (
        <DraftTextField
          form={form}
          field="sessionQuota"
          hint="Maximum number of authorized sessions. Leave empty for the default."
          inputMode="numeric"
        />
      )}
    </>
  );
}

export function MetadataFields({ form: { draft, shown, change } }: FieldsProps) {
  return (
    <MetadataField
      pairs={draft.metadata}
      errors={shown}
      onChange={(metadata) => change({ metadata })}
    />
  );
}

interface DraftTextFieldProps
  extends Omit<ComponentProps<typeof TextField>, "label" | "value" | "onChange"> {
  readonly form: ApplicationForm;
  readonly field: TextDraftField;
}

/** The fields of a draft that are text. */
type TextDraftField = {
  [Name in DraftField]: string extends Draft[Name] ? Name : never;
}[DraftField];

function DraftTextField({ form, field, ...rest }: DraftTextFieldProps) {
  const { draft, shown, change } = form;
  const name = fieldName(field);
  return (
    <TextField
      label={labelOf(name)}
      errors={shown[name]}
      {...rest}
      value={draft[field]}
      onChange={(text) => change({ [field]: text })}
    />
  );
}

/** A list with one value per line. */
function LinesField(props: DraftTextFieldProps) {
  const { form, field } = props;
  return (
    <DraftTextField
      {...props}
      hint="One per line. Leave empty to allow any."
      errors={errorsOfList(form.shown, fieldName(field), parseLines(form.draft[field]))}
      rows={2}
    />
  );
}

export const types = choicesOf(
  CreateApplicationRequestSchema.field.type,
) as readonly ApplicationType[];

const typeHints: Readonly<Record<ApplicationType, string>> = {
  private: "For backends that can keep a secret. It can authorize sessions.",
  public: "For browsers and mobile apps, where the key is public. It can open sessions.",
  management:
    "For administrators and tools that manage applications and sessions and read the audit log.",
};

function TypeField({ form: { draft, change } }: FieldsProps) {
  return (
    <RadioGroup
      legend="Type"
      variant="cards"
      hint="The type cannot be changed later."
      options={types.map((type) => ({ value: type, label: type, hint: typeHints[type] }))}
      value={draft.type}
      onChange={(type) => change({ type })}
    />
  );
}

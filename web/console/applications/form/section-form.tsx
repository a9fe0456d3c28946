import { useQueryClient } from "@tanstack/react-query";
import { type ComponentType, useCallback, useMemo, useState } from "react";
import {
  type Application,
  ApplicationService,
  UpdateApplicationRequestSchema,
} from "../../../../gen/latchkey/v1/application_service_pb.js";
import { problemOf } from "../../../../src/contract/problem-report.js";
import type { ProblemCode } from "../../../../src/contract/problems.js";
import { useClient } from "../../sign-in/connection.js";
import { Button } from "../../ui/buttons.js";
import { Notice } from "../../ui/display.js";
import { toast } from "../../ui/toast.js";
import { describeErrors, topLevelFieldOf } from "../../validation/field-errors.js";
import {
  DetailFields,
  type FieldsProps,
  GrantFields,
  MetadataFields,
  RestrictionFields,
} from "./application-fields.js";
import { type ApplicationForm, FormFrame, useApplicationForm } from "./application-form.js";
import { ConflictNotice, MergedNotice } from "./conflict-notice.js";
import {
  type Draft,
  type DraftField,
  draftOf,
  fieldName,
  mergeDrafts,
  updateRequestOf,
} from "./draft.js";

export type Section = "Details" | "Permissions" | "Restrictions" | "Metadata";

interface SectionFields {
  readonly fields: readonly DraftField[];
  readonly Fields: ComponentType<FieldsProps>;
}

const sections: Readonly<Record<Section, SectionFields>> = {
  Details: { fields: ["name", "description", "externalId", "expiresAt"], Fields: DetailFields },
  Permissions: { fields: ["permissions", "rules"], Fields: GrantFields },
  Restrictions: {
    fields: ["allowedOrigins", "allowedCidrs", "sessionQuota"],
    Fields: RestrictionFields,
  },
  Metadata: { fields: ["metadata"], Fields: MetadataFields },
};

export interface SectionFormProps {
  readonly label: Section;
  /** The latest version on the service. */
  readonly application: Application;
  onClose(): void;
}

/** Saves the section unless the application was changed in the meantime. */
export default function SectionForm({ label, application, onClose }: SectionFormProps) {
  const { fields, Fields } = sections[label];
  const [base, setBase] = useState(application);
  const [conflicts, setConflicts] = useState<readonly DraftField[]>();
  const [isSaved, setIsSaved] = useState(false);
  const form = useApplicationForm({
    base: useMemo(() => draftOf(base), [base]),
    schema: UpdateApplicationRequestSchema,
    requestOf: useCallback((draft: Draft) => updateRequestOf(draft, base), [base]),
  });
  const applications = useClient(ApplicationService);
  const queries = useQueryClient();
  const isOutdated = application.version !== base.version && !isSaved;

  async function save(): Promise<void> {
    try {
      await applications.updateApplication(updateRequestOf(form.draft, base));
    } catch (thrown) {
      if (isVersionConflict(thrown)) {
        await queries.invalidateQueries();
      }
      throw thrown;
    }
    setIsSaved(true);
    await queries.invalidateQueries();
    toast({ title: `${label} saved` });
    onClose();
  }

  function loadLatest(): void {
    const merged = mergeDrafts(draftOf(base), form.draft, draftOf(application));
    form.replace(merged.draft);
    setConflicts(merged.conflicts);
    setBase(application);
  }

  function takeSaved(field: DraftField): void {
    form.change({ [field]: draftOf(base)[field] });
    setConflicts(conflicts?.filter((other) => other !== field));
  }

  return (
    <FormFrame
      form={form}
      saveLabel="Save"
      cancel={<Button onClick={onClose}>Cancel</Button>}
      isSaved={isSaved}
      takesFocus
      save={save}
      isShownElsewhere={isVersionConflict}
    >
      {isOutdated && <ConflictNotice onLoad={loadLatest} />}
      {!isOutdated && conflicts && (
        <MergedNotice conflicts={conflicts} saved={draftOf(base)} onTake={takeSaved} />
      )}
      <Fields form={form} />
      <ErrorsElsewhere form={form} fields={fields} />
    </FormFrame>
  );
}

interface ErrorsElsewhereProps {
  readonly form: ApplicationForm;
  /** The fields of this section. */
  readonly fields: readonly DraftField[];
}

/** Errors of fields that another section shows. An import can create such an application. */
function ErrorsElsewhere({ form, fields }: ErrorsElsewhereProps) {
  const own = [...(fields.includes("permissions") ? ["request"] : []), ...fields.map(fieldName)];
  const others = Object.entries(form.shown).filter(
    ([path]) => !own.includes(topLevelFieldOf(path)),
  );
  return others.length === 0 ? null : (
    <Notice tone="danger">
      {others.map(([path, messages]) => (
        <p key={path}>{describeErrors(path, messages)}</p>
      ))}
    </Notice>
  );
}

const versionMismatch: ProblemCode = "version_mismatch";

function isVersionConflict(thrown: unknown): boolean {
  return thrown !== undefined && problemOf(thrown).code === versionMismatch;
}

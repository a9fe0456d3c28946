import { useQueryClient } from "@tanstack/react-query";
import { Pencil } from "lucide-react";
import { type ReactNode, useCallback, useEffect, useMemo, useRef, useState } from "react";
import {
  type Application,
  ApplicationService,
  UpdateApplicationRequestSchema,
} from "../../../../gen/latchkey/v1/application_service_pb.js";
import { problemOf } from "../../../../src/contract/problem-report.js";
import type { ProblemCode } from "../../../../src/contract/problems.js";
import { useClient } from "../../sign-in/connection.js";
import { useSignedInKey } from "../../sign-in/signed-in-key.js";
import { Button } from "../../ui/buttons.js";
import { Card, Notice } from "../../ui/display.js";
import { toast } from "../../ui/toast.js";
import { describeErrors, topLevelFieldOf } from "../../validation/field-errors.js";
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

/** The section of the page that is being edited. There is at most one. */
export interface Editing {
  readonly section: string | undefined;
  setSection(label: string | undefined): void;
}

interface EditableCardProps extends Omit<SectionFormProps, "onClose" | "label"> {
  readonly label: string;
  readonly editing: Editing;
  /** The section while it is not edited. */
  readonly children: ReactNode;
}

/** A section of an application that is edited in place. */
export function EditableCard({ label, editing, children, ...rest }: EditableCardProps) {
  const { may } = useSignedInKey();
  const { section, setSection } = editing;
  const isEditing = section === label;
  const editButton = useRef<HTMLButtonElement>(null);
  const wasEditing = useRef(false);
  useEffect(() => {
    if (wasEditing.current && !isEditing) {
      editButton.current?.focus();
    }
    wasEditing.current = isEditing;
  }, [isEditing]);
  return (
    <Card
      label={label}
      actions={
        section === undefined &&
        may("application:update") && (
          <Button
            ref={editButton}
            tone="quiet"
            size="small"
            icon={Pencil}
            aria-label={`Edit ${label.toLowerCase()}`}
            onClick={() => setSection(label)}
          >
            Edit
          </Button>
        )
      }
    >
      {isEditing ? (
        <SectionForm {...rest} label={label} onClose={() => setSection(undefined)} />
      ) : (
        children
      )}
    </Card>
  );
}

interface SectionFormProps {
  readonly label: string;
  /** The latest version on the service. */
  readonly application: Application;
  /** The fields of the section. */
  readonly fields: readonly DraftField[];
  editor(form: ApplicationForm): ReactNode;
  onClose(): void;
}

/** Saves the section unless the application was changed in the meantime. */
function SectionForm({ label, application, fields, editor, onClose }: SectionFormProps) {
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
      {editor(form)}
      <ErrorsElsewhere form={form} fields={fields} />
    </FormFrame>
  );
}

/** Errors of fields that another section shows. An import can create such an application. */
function ErrorsElsewhere({ form, fields }: { readonly form: ApplicationForm } & Fields) {
  const own = ["request", ...fields.map(fieldName)];
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

type Fields = Pick<SectionFormProps, "fields">;

const versionMismatch: ProblemCode = "version_mismatch";

function isVersionConflict(thrown: unknown): boolean {
  return thrown !== undefined && problemOf(thrown).code === versionMismatch;
}

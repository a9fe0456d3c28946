import { useQuery } from "@connectrpc/connect-query";
import { useCallback, useMemo, useState } from "react";
import { Redirect } from "wouter";
import {
  type Application,
  ApplicationService,
  UpdateApplicationRequestSchema,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import { problemOf } from "../../../src/contract/problem-report.js";
import type { ProblemCode } from "../../../src/contract/problems.js";
import { useClient } from "../sign-in/connection.js";
import { useAccess } from "../sign-in/signed-in-key.js";
import { Skeleton } from "../ui/display.js";
import { useRefresh } from "../ui/hooks.js";
import { NotAllowed, Page, Problem } from "../ui/page.js";
import { ApplicationFields } from "./form/application-fields.js";
import { FormFrame, useApplicationForm } from "./form/application-form.js";
import { ConflictNotice, MergedNotice } from "./form/conflict-notice.js";
import {
  type Draft,
  type DraftField,
  draftOf,
  mergeDrafts,
  updateRequestOf,
} from "./form/draft.js";

interface EditApplicationPageProps {
  readonly id: string;
}

export default function EditApplicationPage({ id }: EditApplicationPageProps) {
  const { may } = useAccess();
  const permission = ["application:read", "application:update"].find((name) => !may(name));
  return (
    <Page
      title="Edit application"
      parents={[
        { label: "Applications", href: "/applications" },
        { label: "Application", href: `/applications/${id}` },
      ]}
    >
      {permission === undefined ? (
        <LoadedApplication id={id} />
      ) : (
        <NotAllowed permission={permission} />
      )}
    </Page>
  );
}

function LoadedApplication({ id }: EditApplicationPageProps) {
  const { data, error, isFetchedAfterMount, refetch } = useQuery(
    ApplicationService.method.getApplication,
    { id },
    { refetchOnMount: "always" },
  );
  // The cached application may be stale.
  if (isFetchedAfterMount && data) {
    return <EditApplication saved={data} onConflict={refetch} />;
  }
  return error ? <Problem error={error} /> : <Skeleton lines={8} label="Loading the application" />;
}

interface EditApplicationProps {
  /** The latest version on the service. */
  readonly saved: Application;
  onConflict(): void;
}

/** Saves changes unless the application was changed in the meantime. */
function EditApplication({ saved, onConflict }: EditApplicationProps) {
  const { id } = saved;
  const [base, setBase] = useState(saved);
  const [conflicts, setConflicts] = useState<readonly DraftField[]>();
  const [isSaved, setIsSaved] = useState(false);
  const form = useApplicationForm({
    base: useMemo(() => draftOf(base), [base]),
    schema: UpdateApplicationRequestSchema,
    requestOf: useCallback((draft: Draft) => updateRequestOf(draft, base), [base]),
  });
  const applications = useClient(ApplicationService);
  const refresh = useRefresh();

  async function save(): Promise<void> {
    try {
      await applications.updateApplication(updateRequestOf(form.draft, base));
    } catch (thrown) {
      if (isVersionConflict(thrown)) {
        onConflict();
      }
      throw thrown;
    }
    setIsSaved(true);
    refresh();
  }

  function loadLatest(): void {
    const merged = mergeDrafts(draftOf(base), form.draft, draftOf(saved));
    form.replace(merged.draft);
    setConflicts(merged.conflicts);
    setBase(saved);
  }

  function takeSaved(field: DraftField): void {
    form.change({ [field]: draftOf(base)[field] });
    setConflicts(conflicts?.filter((other) => other !== field));
  }

  if (isSaved) {
    return <Redirect to={`/applications/${id}`} replace />;
  }
  return (
    <FormFrame
      form={form}
      saveLabel="Save"
      cancelTo={`/applications/${id}`}
      isSaved={isSaved}
      save={save}
      isShownElsewhere={isVersionConflict}
    >
      {saved.version !== base.version && <ConflictNotice onLoad={loadLatest} />}
      {saved.version === base.version && conflicts && (
        <MergedNotice conflicts={conflicts} saved={draftOf(base)} onTake={takeSaved} />
      )}
      <ApplicationFields form={form} isNew={false} />
    </FormFrame>
  );
}

const versionMismatch: ProblemCode = "version_mismatch";

function isVersionConflict(thrown: unknown): boolean {
  return thrown !== undefined && problemOf(thrown).code === versionMismatch;
}

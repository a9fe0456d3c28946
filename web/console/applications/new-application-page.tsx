import { useRef, useState } from "react";
import { useLocation } from "wouter";
import {
  ApplicationService,
  type CreateApplicationRequest,
  CreateApplicationRequestSchema,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import { home } from "../shell/pages.js";
import { useClient } from "../sign-in/connection.js";
import { useSignedInKey } from "../sign-in/signed-in-key.js";
import { ButtonLink } from "../ui/buttons.js";
import { useRefresh } from "../ui/hooks.js";
import { NotAllowed, Page } from "../ui/page.js";
import { useQueryParams } from "../ui/query-params.js";
import { toast } from "../ui/toast.js";
import { ApplicationFields, types } from "./form/application-fields.js";
import { FormFrame, useApplicationForm } from "./form/application-form.js";
import { createRequestOf, type Draft, emptyDraft } from "./form/draft.js";
import { useShowNewKey } from "./new-key.js";

export default function NewApplicationPage() {
  const { may } = useSignedInKey();
  return (
    <Page title="New application" parents={[{ label: "Applications", href: "/applications" }]}>
      {may("application:create") ? (
        <NewApplication />
      ) : (
        <NotAllowed permission="application:create" />
      )}
    </Page>
  );
}

function NewApplication() {
  const { may } = useSignedInKey();
  const [params] = useQueryParams();
  const type = types.find((choice) => choice === params.get("type")) ?? emptyDraft.type;
  const form = useApplicationForm({
    base: { ...emptyDraft, type },
    schema: CreateApplicationRequestSchema,
    requestOf: createRequestOf,
  });
  const [isSaved, setIsSaved] = useState(false);
  const [, navigate] = useLocation();
  const applications = useClient(ApplicationService);
  const showNewKey = useShowNewKey();
  const refresh = useRefresh();
  const last = useRef<{ readonly draft: Draft; readonly request: CreateApplicationRequest }>(
    undefined,
  );
  async function save(): Promise<void> {
    const { draft } = form;
    // An expiry in days depends on the time, and a repeated call must be the same.
    if (last.current?.draft !== draft) {
      last.current = { draft, request: createRequestOf(draft) };
    }
    const application = await applications.createApplication(last.current.request);
    const { id, key = "" } = application;
    setIsSaved(true);
    refresh();
    function onStored(): void {
      if (may("application:read")) {
        navigate(`/applications/${id}`, { replace: true });
      } else {
        navigate(home, { replace: true });
        toast({ title: `${application.name} is created` });
      }
    }
    showNewKey({ key, application, onStored });
  }
  return (
    <FormFrame
      form={form}
      saveLabel="Create application"
      cancel={<ButtonLink href="/applications">Cancel</ButtonLink>}
      isSaved={isSaved}
      takesFocus
      save={save}
    >
      <ApplicationFields form={form} />
    </FormFrame>
  );
}

import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { useMemo, useState } from "react";
import { problemOf } from "../../../../src/contract/problem-report.js";
import { serviceNow } from "../../access/service-time.js";
import { mergeErrors } from "../../validation/field-errors.js";
import { useFieldErrors, useGrantErrors } from "../../validation/use-field-errors.js";
import type { FieldErrors } from "../../validation/validate.js";
import type { Draft } from "./draft.js";
import { expiryErrors } from "./expiry.js";
import { changedFields, type DraftField } from "./merge-drafts.js";

/** What each field of the form is called by the service. */
const names: Readonly<Record<DraftField, string>> = {
  name: "name",
  type: "type",
  expiry: "expires_at",
  permissions: "permissions",
  rules: "rules",
  allowedOrigins: "allowed_origins",
  allowedCidrs: "allowed_cidrs",
  sessionQuota: "session_quota",
};

const none: FieldErrors = {};

export interface ApplicationForm {
  readonly draft: Draft;
  /** What is wrong with what was entered, and with all else once it was tried to save it. */
  readonly shown: FieldErrors;
  readonly isChanged: boolean;
  change(fields: Partial<Draft>): void;
  replace(draft: Draft): void;
  /** Notes that the person wants to save it, and answers whether that can be tried. */
  submit(): boolean;
  /** Notes why the service has refused it. */
  refuse(thrown: unknown): void;
}

interface ApplicationFormOptions<Desc extends DescMessage> {
  /** What the form began with, or was last saved. */
  readonly base: Draft;
  readonly schema: Desc;
  /** What is asked of the service to save it; the same function each time. */
  requestOf(draft: Draft): MessageShape<Desc>;
}

/** What is entered, and what is wrong with it. */
export function useApplicationForm<Desc extends DescMessage>({
  base,
  schema,
  requestOf,
}: ApplicationFormOptions<Desc>): ApplicationForm {
  const [draft, setDraft] = useState(base);
  const [hasTried, setHasTried] = useState(false);
  const [refused, setRefused] = useState(none);
  const [touched, setTouched] = useState<ReadonlySet<DraftField>>(new Set());
  const grants = useGrantErrors(draft.type, draft);
  const broken = useFieldErrors(
    schema,
    useMemo(() => requestOf(draft), [requestOf, draft]),
  );
  const errors = useMemo(() => {
    const expires = expiryErrors(draft.expiry, serviceNow());
    return mergeErrors(broken, grants, expires.length > 0 ? { [names.expiry]: expires } : none);
  }, [broken, grants, draft.expiry]);
  const told = [...touched, "rules" as const].map((field) => names[field]);
  return {
    draft,
    shown: mergeErrors(hasTried ? errors : within(errors, told), refused),
    isChanged: changedFields(base, draft).length > 0,
    change(fields) {
      const changed = Object.keys(fields) as DraftField[];
      setDraft({ ...draft, ...fields });
      setTouched(new Set([...touched, ...changed]));
      setRefused(
        without(
          refused,
          changed.map((field) => names[field]),
        ),
      );
    },
    replace: setDraft,
    submit() {
      setHasTried(true);
      setRefused(none);
      return Object.keys(errors).length === 0;
    },
    refuse: (thrown) => setRefused(problemOf(thrown).errors),
  };
}

function within(errors: FieldErrors, fields: readonly string[]): FieldErrors {
  return select(errors, (field) => fields.includes(field));
}

function without(errors: FieldErrors, fields: readonly string[]): FieldErrors {
  return select(errors, (field) => !fields.includes(field));
}

/** Those of the fields that are chosen by their names, with all that is in them. */
function select(errors: FieldErrors, isChosen: (field: string) => boolean): FieldErrors {
  return Object.fromEntries(
    Object.entries(errors).filter(([path]) => isChosen(path.replace(/[.[].*$/, ""))),
  );
}

import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { type FormEvent, type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import { problemOf } from "../../../../src/contract/problem-report.js";
import type { ProblemCode } from "../../../../src/contract/problems.js";
import { Button } from "../../ui/buttons.js";
import { useAction } from "../../ui/hooks.js";
import { LeaveGuard } from "../../ui/leave-guard.js";
import { Problem } from "../../ui/page.js";
import { serviceNow } from "../../ui/service-clock.js";
import {
  mergeErrors,
  topLevelFieldOf,
  useFieldErrors,
  useGrantErrors,
} from "../../validation/field-errors.js";
import type { FieldErrors } from "../../validation/validate.js";
import { changedFields, type Draft, type DraftField, emptyDraft, fieldName } from "./draft.js";
import { expiryErrors } from "./expiry-field.js";
import { pairErrors } from "./metadata-field.js";

interface FormFrameProps {
  readonly form: ApplicationForm;
  readonly saveLabel: string;
  /** A link or a button. */
  readonly cancel: ReactNode;
  readonly isSaved: boolean;
  /** Whether the first field for text gets the focus. */
  readonly takesFocus?: boolean;
  readonly children: ReactNode;
  save(): Promise<void>;
  /** Whether the page shows this error itself. */
  isShownElsewhere?(thrown: unknown): boolean;
}

/** Validates before it saves, and confirms before unsaved changes are lost. */
export function FormFrame(props: FormFrameProps) {
  const { form, saveLabel, cancel, isSaved, takesFocus, children, save, isShownElsewhere } = props;
  const element = useRef<HTMLFormElement>(null);
  const [failedSubmits, setFailedSubmits] = useState(0);
  const { run, isBusy, problem } = useAction(async () => {
    try {
      await save();
    } catch (thrown) {
      form.setServerErrors(thrown);
      setFailedSubmits((before) => before + 1);
      throw thrown;
    }
  });
  function submit(event: FormEvent): void {
    event.preventDefault();
    if (form.submit()) {
      void run();
    } else {
      setFailedSubmits(failedSubmits + 1);
    }
  }
  useEffect(() => {
    if (failedSubmits > 0) {
      element.current?.querySelector<HTMLElement>("[aria-invalid]")?.focus();
    }
  }, [failedSubmits]);
  useEffect(() => {
    if (takesFocus) {
      const text = "input:not([type=radio], [type=checkbox]), textarea, button";
      element.current?.querySelector<HTMLElement>(text)?.focus();
    }
  }, [takesFocus]);
  const hasErrors = Object.keys(form.shown).length > 0;
  return (
    <form ref={element} className="application-form" noValidate onSubmit={submit}>
      {children}
      {isShownElsewhere?.(problem) || isShownAtFields(problem) ? null : <Problem error={problem} />}
      <p role="status" className="field-error">
        {failedSubmits > 0 && hasErrors && "Fix the errors above."}
      </p>
      <div className="actions">
        <Button type="submit" tone="primary" isBusy={isBusy}>
          {saveLabel}
        </Button>
        {cancel}
      </div>
      <LeaveGuard isOn={form.isChanged && !isSaved} title="Leave without saving?">
        <p>Your changes are not saved.</p>
      </LeaveGuard>
    </form>
  );
}

const none: FieldErrors = {};

export interface ApplicationForm {
  readonly draft: Draft;
  /** Errors of edited fields. After the first submit: of all fields. */
  readonly shown: FieldErrors;
  readonly isChanged: boolean;
  change(fields: Partial<Draft>): void;
  replace(draft: Draft): void;
  /** Shows all errors. Returns whether there are none. */
  submit(): boolean;
  /** Shows the field errors of a refused call. */
  setServerErrors(thrown: unknown): void;
}

interface ApplicationFormOptions<Desc extends DescMessage> {
  /** The saved state. */
  readonly base: Draft;
  readonly schema: Desc;
  /** Must be a stable function. */
  requestOf(draft: Draft): MessageShape<Desc>;
}

/** The state and the validation of the form. */
export function useApplicationForm<Desc extends DescMessage>({
  base,
  schema,
  requestOf,
}: ApplicationFormOptions<Desc>): ApplicationForm {
  const [draft, setDraft] = useState(base);
  const [wasSubmitted, setWasSubmitted] = useState(false);
  const [serverErrors, setServerErrors] = useState(none);
  const [touched, setTouched] = useState<ReadonlySet<DraftField>>(new Set());
  const grants = useGrantErrors(draft.type, draft);
  const invalid = useFieldErrors(
    schema,
    useMemo(() => requestOf(draft), [requestOf, draft]),
  );
  const changed = changedFields(base, draft);
  // A saved expiry may be in the past.
  const changesExpiry = changed.includes("expiresAt");
  const errors = useMemo(() => {
    const expires = changesExpiry ? expiryErrors(draft.expiresAt, serviceNow()) : [];
    return mergeErrors(
      invalid,
      grants,
      pairErrors(draft.metadata),
      expires.length > 0 ? { [fieldName("expiresAt")]: expires } : none,
    );
  }, [invalid, grants, draft, changesExpiry]);
  const edited = [...touched, "rules" as const].map(fieldName);
  return {
    draft,
    shown: mergeErrors(wasSubmitted ? errors : within(errors, edited), serverErrors),
    isChanged: changed.length > 0,
    change(fields) {
      const names = Object.keys(fields) as DraftField[];
      setDraft({ ...draft, ...fields });
      setTouched(new Set([...touched, ...names]));
      const grants = names.includes("permissions") || names.includes("rules");
      const fixed = [...names.map(fieldName), ...(grants ? [grantsField] : [])];
      setServerErrors(without(serverErrors, fixed));
    },
    replace: setDraft,
    submit() {
      setWasSubmitted(true);
      setServerErrors(none);
      return Object.keys(errors).length === 0;
    },
    setServerErrors: (thrown) => setServerErrors(serverErrorsOf(thrown)),
  };
}

const externalIdTaken: ProblemCode = "external_id_taken";

/** The error of a request without permissions and rules. The permissions show it. */
const grantsField = "request";

/** Whether the form shows the whole error at its fields. */
function isShownAtFields(thrown: unknown): boolean {
  const fields = thrown === undefined ? [] : Object.keys(serverErrorsOf(thrown));
  const own = [
    grantsField,
    ...Object.keys(emptyDraft).map((field) => fieldName(field as DraftField)),
  ];
  return fields.length > 0 && fields.every((field) => own.includes(topLevelFieldOf(field)));
}

function isExternalIdTaken(thrown: unknown): boolean {
  return problemOf(thrown).code === externalIdTaken;
}

function serverErrorsOf(thrown: unknown): FieldErrors {
  return isExternalIdTaken(thrown)
    ? { [fieldName("externalId")]: ["is used by another application"] }
    : problemOf(thrown).errors;
}

function within(errors: FieldErrors, fields: readonly string[]): FieldErrors {
  return select(errors, (field) => fields.includes(field));
}

function without(errors: FieldErrors, fields: readonly string[]): FieldErrors {
  return select(errors, (field) => !fields.includes(field));
}

/** Errors of the chosen top-level fields, nested ones included. */
function select(errors: FieldErrors, isChosen: (field: string) => boolean): FieldErrors {
  return Object.fromEntries(
    Object.entries(errors).filter(([path]) => isChosen(topLevelFieldOf(path))),
  );
}

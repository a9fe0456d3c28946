import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { type FormEvent, type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import { Link } from "wouter";
import { problemOf } from "../../../../src/contract/problem-report.js";
import { serviceNow } from "../../access/service-clock.js";
import { Button } from "../../ui/buttons.js";
import { useAction } from "../../ui/hooks.js";
import { LeaveGuard } from "../../ui/leave-guard.js";
import { Problem } from "../../ui/page.js";
import { mergeErrors, useFieldErrors, useGrantErrors } from "../../validation/field-errors.js";
import type { FieldErrors } from "../../validation/validate.js";
import { changedFields, type Draft, type DraftField } from "./draft.js";
import { expiryErrors } from "./expiry-field.js";

interface FormFrameProps {
  readonly form: ApplicationForm;
  readonly saveLabel: string;
  /** Where the person goes who gives up. */
  readonly cancelTo: string;
  /** Whether what was entered is saved, and so can be left. */
  readonly isSaved: boolean;
  readonly children: ReactNode;
  /** Saves it, or throws why not. */
  save(): Promise<void>;
  /** Whether a refusal is told elsewhere. */
  isShownElsewhere?(thrown: unknown): boolean;
}

/** A form that is saved once nothing is wrong with it, and not left by accident before. */
export function FormFrame(props: FormFrameProps) {
  const { form, saveLabel, cancelTo, isSaved, children, save, isShownElsewhere } = props;
  const element = useRef<HTMLFormElement>(null);
  const [refusals, setRefusals] = useState(0);
  const { run, isBusy, problem } = useAction(async () => {
    try {
      await save();
    } catch (thrown) {
      form.refuse(thrown);
      setRefusals((before) => before + 1);
      throw thrown;
    }
  });
  function submit(event: FormEvent): void {
    event.preventDefault();
    if (form.submit()) {
      void run();
    } else {
      setRefusals(refusals + 1);
    }
  }
  useEffect(() => {
    if (refusals > 0) {
      element.current?.querySelector<HTMLElement>("[aria-invalid]")?.focus();
    }
  }, [refusals]);
  const isWrong = Object.keys(form.shown).length > 0;
  return (
    <form ref={element} className="application-form" noValidate onSubmit={submit}>
      {children}
      {isShownElsewhere?.(problem) ? null : <Problem of={problem} />}
      <p role="status" className="field-error">
        {refusals > 0 && isWrong && "Something is not right yet: see above."}
      </p>
      <div className="actions">
        <Button type="submit" tone="primary" isBusy={isBusy}>
          {saveLabel}
        </Button>
        <Link className="button" href={cancelTo}>
          Cancel
        </Link>
      </div>
      <LeaveGuard isOn={form.isChanged && !isSaved} title="Leave without saving?">
        <p>What you have entered is not saved.</p>
      </LeaveGuard>
    </form>
  );
}

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

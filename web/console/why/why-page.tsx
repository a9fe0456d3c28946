import { type ReactNode, useId, useMemo, useState } from "react";
import { useSearchParams } from "wouter";
import {
  AccessService,
  type CheckAccessRequest,
  CheckAccessRequestSchema,
} from "../../../gen/latchkey/v1/access_service_pb.js";
import { useAccess } from "../access/access.js";
import { isWholeId } from "../names/application-link.js";
import { Page } from "../ui/page.js";
import { useFieldErrors } from "../validation/field-errors.js";
import { Answer } from "./decision.js";
import { subjectOfOwnKey } from "./subject.js";
import { type ChosenSubject, firstChoice, SubjectChoice } from "./subject-choice.js";
import { FoundAnswer, KeyAnswer } from "./subject-decision.js";
import "./why.css";
import { create } from "@bufbuild/protobuf";
import { useQuery } from "@connectrpc/connect-query";
import { Field } from "../ui/fields.js";
import type { FieldErrors } from "../validation/validate.js";

/** Explains decisions: who may do what with a token, and which rule says so. */
export default function WhyPage() {
  const { may } = useAccess();
  const [named, setNamed] = useSearchParams();
  const [chosen, setChosen] = useState(() => firstChoice(named, may));
  const [question, setQuestion] = useState(emptyQuestion);
  const request = useMemo(() => requestOf(question, chosen.key), [question, chosen.key]);
  const { key: keyErrors, ...errors } = useFieldErrors(CheckAccessRequestSchema, request);

  function choose(next: ChosenSubject): void {
    setChosen(next);
    setNamed(addressOf(next), { replace: true });
  }

  const isWhole = Object.keys(errors).length === 0 && question.permission !== "";
  const isAskable = isWhole && (chosen.by !== "key" || (chosen.key !== "" && !keyErrors));
  return (
    <Page title="Why?">
      <p className="muted">
        May it do this, with this token? The rules are tried one after the other, and the first that
        matches decides.
      </p>
      <div className="why">
        <section className="card" aria-label="The question">
          <SubjectChoice chosen={chosen} keyErrors={keyErrors} onChange={choose} />
          <QuestionFields question={question} errors={errors} onChange={setQuestion} />
        </section>
        <div className="why-answer">
          {isAskable ? (
            <AnswerFor chosen={chosen} request={request} />
          ) : (
            <p className="muted">Say who asks, and for which permission.</p>
          )}
        </div>
      </div>
    </Page>
  );
}

/** What can be shared: never a key. */
function addressOf({ by, applicationId, sessionId }: ChosenSubject): Record<string, string> {
  if (by === "application" && applicationId !== "") {
    return { application: applicationId };
  }
  return by === "session" && isWholeId(sessionId) ? { session: sessionId } : {};
}

interface AnswerForProps {
  readonly chosen: ChosenSubject;
  readonly request: CheckAccessRequest;
}

function AnswerFor({ chosen, request }: AnswerForProps) {
  const { me } = useAccess();
  switch (chosen.by) {
    case "key":
      return <KeyAnswer request={request} />;
    case "me":
      return <Answer request={request} subject={subjectOfOwnKey(me)} />;
    case "application":
      return chosen.applicationId === "" ? (
        <p className="muted">Choose an application.</p>
      ) : (
        <FoundAnswer request={request} applicationId={chosen.applicationId} />
      );
    case "session":
      return isWholeId(chosen.sessionId) ? (
        <FoundAnswer request={request} sessionId={chosen.sessionId} />
      ) : (
        <p className="muted">Enter the id of a session, which is no key.</p>
      );
  }
}

interface QuestionFieldsProps {
  readonly question: Question;
  readonly errors: FieldErrors;
  onChange(question: Question): void;
}

/** What is asked: may it do this, with this token, from there? */
export function QuestionFields({ question, errors, onChange }: QuestionFieldsProps) {
  const { data: known } = useQuery(AccessService.method.listPermissions, {});
  const listId = useId();
  const chosen = known?.data.find(({ name }) => name === question.permission);

  function field(name: keyof Question, label: string, path: string, more: More = {}): ReactNode {
    const { hint, ...attributes } = more;
    return (
      <Field label={label} hint={hint} errors={question[name] === "" ? [] : errors[path]}>
        {(control) => (
          <input
            {...control}
            {...attributes}
            autoCapitalize="none"
            autoComplete="off"
            spellCheck={false}
            value={question[name]}
            onChange={({ target }) => onChange({ ...question, [name]: target.value })}
          />
        )}
      </Field>
    );
  }

  return (
    <>
      {field("permission", "Permission", "permission", {
        list: listId,
        placeholder: "token:read",
        hint: chosen?.allows,
      })}
      <datalist id={listId}>
        {known?.data.map(({ name }) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      <div className="why-pair">
        {field("tokenId", "Token id", "token.id", { placeholder: "card-4242" })}
        {field("container", "Token container", "token.container", { placeholder: "/pci/" })}
      </div>
      <div className="why-pair">
        {field("origin", "Origin", "origin", { placeholder: "https://shop.example.com" })}
        {field("address", "Address", "address", { placeholder: "203.0.113.7" })}
      </div>
    </>
  );
}

interface More {
  readonly hint?: string | undefined;
  readonly list?: string;
  readonly placeholder?: string;
}

/** What the person asks, as it stands in the fields: what is empty is not said. */
export interface Question {
  readonly permission: string;
  readonly tokenId: string;
  readonly container: string;
  readonly origin: string;
  readonly address: string;
}

export const emptyQuestion: Question = {
  permission: "",
  tokenId: "",
  container: "",
  origin: "",
  address: "",
};

/** The question as the service takes it, about a key. */
export function requestOf(question: Question, key: string): CheckAccessRequest {
  const { permission, tokenId, container, origin, address } = question;
  const token = { ...given("id", tokenId), ...given("container", container) };
  return create(CheckAccessRequestSchema, {
    key,
    permission,
    ...(Object.keys(token).length > 0 && { token }),
    ...given("origin", origin),
    ...given("address", address),
  });
}

function given<Name extends string>(name: Name, value: string): { readonly [K in Name]?: string } {
  return (value === "" ? {} : { [name]: value }) as { readonly [K in Name]?: string };
}

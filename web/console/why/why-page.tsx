import { useMemo, useState } from "react";
import { useSearchParams } from "wouter";
import {
  type CheckAccessRequest,
  CheckAccessRequestSchema,
} from "../../../gen/latchkey/v1/access_service_pb.js";
import { useAccess } from "../access/access.js";
import { Page } from "../ui/page.js";
import { isWholeId } from "../ui/whole-id.js";
import { useFieldErrors } from "../validation/use-field-errors.js";
import { Answer } from "./answer.js";
import { FoundAnswer } from "./found-answer.js";
import { KeyAnswer } from "./key-answer.js";
import { emptyQuestion, requestOf } from "./question.js";
import { QuestionFields } from "./question-fields.js";
import { subjectOfOwnKey } from "./subject.js";
import { type ChosenSubject, firstChoice, SubjectChoice } from "./subject-choice.js";
import "./why.css";

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

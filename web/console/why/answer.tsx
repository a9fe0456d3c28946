import type {
  CheckAccessRequest,
  CheckAccessResponse,
} from "../../../gen/latchkey/v1/access_service_pb.js";
import { explainRules } from "../../../src/contract/decisions/explain.js";
import { isOwnPermission } from "../../../src/contract/methods.js";
import { Badge } from "../ui/badge.js";
import { useNow } from "../ui/use-now.js";
import { foresee } from "./foresee.js";
import { Sample } from "./sample.js";
import { Steps } from "./steps.js";
import { isBeforeRules, refusalOf, type Subject } from "./subject.js";
import { type Judgement, Verdict } from "./verdict.js";

interface AnswerProps {
  readonly request: CheckAccessRequest;
  readonly subject: Subject;
  /** What the service says of the key, which then counts. */
  readonly told?: CheckAccessResponse;
}

/** What comes of a question, and how. */
export function Answer({ request, subject, told }: AnswerProps) {
  const now = useNow();
  const { permission, token } = request;
  const ownPermission = isOwnPermission(permission);
  const asked = { permission, token, ownPermission };
  const own = explainRules(subject.grants, asked);
  const limits = subject.authorizer?.grants;
  const byAuthorizer = limits && explainRules(limits, asked);
  const refusal = refusalOf(subject, request, now);
  const decisions = { own: own.decision, byAuthorizer: byAuthorizer?.decision };
  const judgement = told ?? foresee(subject, request, decisions, refusal);
  return (
    <>
      <SubjectName subject={subject} />
      <Verdict judgement={judgement} />
      {!told && <Caveats subject={subject} />}
      <section className="card" aria-label="How it comes about">
        <h3>How it comes about</h3>
        {isBeforeRules(judgement.reason) && (
          <p className="muted">
            The rules are not even tried. If the key were let in, it would go on so:
          </p>
        )}
        {limits && <h4>What the session was granted</h4>}
        <Steps explanation={own} rules={subject.grants.rules} permission={permission} />
        {limits && byAuthorizer && (
          <>
            <h4>What {subject.authorizer?.application?.name ?? "its authorizer"} is granted now</h4>
            <p className="muted">
              The session may do only what both allow, and sees what both show.
            </p>
            <Steps explanation={byAuthorizer} rules={limits.rules} permission={permission} />
          </>
        )}
      </section>
      <ShownSample judgement={judgement} />
    </>
  );
}

/** Whom the answer is about. */
function SubjectName({ subject: { application, session } }: { readonly subject: Subject }) {
  const name = application?.name ?? "an application";
  return (
    <h2 className="why-subject">
      {session ? `A session of ${name}` : name}
      {application && <Badge>{application.type}</Badge>}
    </h2>
  );
}

/** How much of a token the judgement shows. */
export function ShownSample({ judgement }: { readonly judgement: Judgement }) {
  return <Sample transform={judgement.allowed ? judgement.transform : undefined} />;
}

/** What cannot be told without the key. */
function Caveats({ subject: { application, authorizer } }: { readonly subject: Subject }) {
  return (
    <>
      {!application && (
        <p className="hint">
          Whether its application is disabled, and from where its keys may be used, is told to keys
          with application:read.
        </p>
      )}
      {authorizer && !authorizer.grants && (
        <p className="hint">
          The session may do only what the application that authorized it may do too. What that is,
          is told to keys with application:read.
        </p>
      )}
    </>
  );
}

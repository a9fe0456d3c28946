import type { CheckAccessRequest } from "../../../gen/latchkey/v1/access_service_pb.js";
import { Problem } from "../ui/problem.js";
import { Answer } from "./answer.js";
import { useSubject } from "./use-subject.js";

interface FoundAnswerProps {
  readonly request: CheckAccessRequest;
  readonly applicationId?: string | undefined;
  readonly sessionId?: string | undefined;
}

/** What an application or a session may do, by what is known of it. */
export function FoundAnswer({ request, ...sought }: FoundAnswerProps) {
  const { subject, isLoading, error, missing } = useSubject(sought);
  if (missing !== undefined) {
    return <p className="muted">What it may do is told to keys with {missing}.</p>;
  }
  if (isLoading) {
    return <p className="muted">Loading…</p>;
  }
  return subject ? <Answer request={request} subject={subject} /> : <Problem of={error} />;
}

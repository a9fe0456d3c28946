import { useQuery } from "@connectrpc/connect-query";
import { keepPreviousData } from "@tanstack/react-query";
import {
  AccessService,
  type CheckAccessRequest,
} from "../../../gen/latchkey/v1/access_service_pb.js";
import { useDebounced } from "../ui/hooks.js";
import { Problem } from "../ui/page.js";
import { DecisionDetails, DecisionSummary, SampleForDecision } from "./decision.js";
import { useSubject } from "./subject.js";

/** What the service says of a key, with the rules that it went by where the person may see them. */
export function KeyDecision({ request }: { readonly request: CheckAccessRequest }) {
  const asked = useDebounced(request);
  const {
    data: told,
    error,
    dataUpdatedAt,
    isPlaceholderData,
  } = useQuery(AccessService.method.checkAccess, asked, {
    placeholderData: keepPreviousData,
    // The key is not to be kept for longer than it is shown.
    gcTime: 0,
  });
  const isGone = told?.reason === "expired";
  const found = useSubject({
    applicationId: isGone || told?.sessionId !== undefined ? undefined : told?.applicationId,
    sessionId: isGone ? undefined : told?.sessionId,
    decidedAt: dataUpdatedAt,
  });
  // The answer to the question before says nothing of this one.
  if (!told || isPlaceholderData) {
    return error ? <Problem of={error} /> : <p className="muted">Asking…</p>;
  }
  if (found.subject) {
    return <DecisionDetails request={asked} subject={found.subject} told={told} />;
  }
  return (
    <>
      <DecisionSummary decision={told} />
      {found.missing !== undefined && (
        <p className="hint">Its rules are shown to keys with {found.missing}.</p>
      )}
      <Problem of={found.error} />
      <SampleForDecision decision={told} />
    </>
  );
}

interface SubjectDecisionProps {
  readonly request: CheckAccessRequest;
  readonly applicationId?: string | undefined;
  readonly sessionId?: string | undefined;
}

/** What an application or a session may do, by what is known of it. */
export function SubjectDecision({ request, ...reference }: SubjectDecisionProps) {
  const { subject, isLoading, error, missing } = useSubject(reference);
  if (missing !== undefined) {
    return <p className="muted">What it may do is told to keys with {missing}.</p>;
  }
  if (isLoading) {
    return <p className="muted">Loading…</p>;
  }
  return subject ? <DecisionDetails request={request} subject={subject} /> : <Problem of={error} />;
}

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

/** The decision of the service about a key, with its rules if the signed-in key may read them. */
export function KeyDecision({ request }: { readonly request: CheckAccessRequest }) {
  const debounced = useDebounced(request);
  const {
    data: decision,
    error,
    dataUpdatedAt,
    isPlaceholderData,
  } = useQuery(AccessService.method.checkAccess, debounced, {
    placeholderData: keepPreviousData,
    // Do not cache the key.
    gcTime: 0,
  });
  const isExpired = decision?.reason === "expired";
  const found = useSubject({
    applicationId:
      isExpired || decision?.sessionId !== undefined ? undefined : decision?.applicationId,
    sessionId: isExpired ? undefined : decision?.sessionId,
    decidedAt: dataUpdatedAt,
  });
  // Placeholder data belongs to the previous request.
  if (!decision || isPlaceholderData) {
    return error ? <Problem of={error} /> : <p className="muted">Checking…</p>;
  }
  if (found.subject) {
    return <DecisionDetails request={debounced} subject={found.subject} actual={decision} />;
  }
  return (
    <>
      <DecisionSummary decision={decision} />
      {found.missing !== undefined && (
        <p className="hint">Your key needs {found.missing} to show the rules.</p>
      )}
      <Problem of={found.error} />
      <SampleForDecision decision={decision} />
    </>
  );
}

interface SubjectDecisionProps {
  readonly request: CheckAccessRequest;
  readonly applicationId?: string | undefined;
  readonly sessionId?: string | undefined;
}

/** A preview for an application or a session. */
export function SubjectDecision({ request, ...reference }: SubjectDecisionProps) {
  const { subject, isLoading, error, missing } = useSubject(reference);
  if (missing !== undefined) {
    return <p className="muted">Your key needs {missing}.</p>;
  }
  if (isLoading) {
    return <p className="muted">Loading…</p>;
  }
  return subject ? <DecisionDetails request={request} subject={subject} /> : <Problem of={error} />;
}

import { useQuery } from "@connectrpc/connect-query";
import { keepPreviousData } from "@tanstack/react-query";
import {
  AccessService,
  type CheckAccessRequest,
} from "../../../gen/latchkey/v1/access_service_pb.js";
import { Problem } from "../ui/problem.js";
import { useSettled } from "../ui/use-settled.js";
import { Answer, ShownSample } from "./answer.js";
import { useSubject } from "./use-subject.js";
import { Verdict } from "./verdict.js";

/** What the service says of a key, with the rules that it went by where the person may see them. */
export function KeyAnswer({ request }: { readonly request: CheckAccessRequest }) {
  const asked = useSettled(request);
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
    return <Answer request={asked} subject={found.subject} told={told} />;
  }
  return (
    <>
      <Verdict judgement={told} />
      {found.missing !== undefined && (
        <p className="hint">Its rules are shown to keys with {found.missing}.</p>
      )}
      <Problem of={found.error} />
      <ShownSample judgement={told} />
    </>
  );
}

import type { ConnectError } from "@connectrpc/connect";
import { useQuery } from "@connectrpc/connect-query";
import { useEffect } from "react";
import { ApplicationService } from "../../../gen/latchkey/v1/application_service_pb.js";
import { SessionService } from "../../../gen/latchkey/v1/session_service_pb.js";
import { useAccess } from "../access/access.js";
import type { Subject } from "./subject.js";

interface Sought {
  readonly applicationId?: string | undefined;
  readonly sessionId?: string | undefined;
  /** Another number with each decision: what decided may have changed since the one before. */
  readonly decidedAt?: number;
}

interface FoundSubject {
  readonly subject?: Subject;
  readonly isLoading: boolean;
  readonly error: ConnectError | null;
  /** The permission that the person would need to see the rules. */
  readonly missing?: string;
}

/** Looks an application or a session up, as far as the person may. */
export function useSubject({ applicationId, sessionId, decidedAt }: Sought): FoundSubject {
  const { may } = useAccess();
  const mayReadApplication = may("application:read");
  const mayReadSession = may("session:read");
  const session = useQuery(
    SessionService.method.getSession,
    { id: sessionId ?? "" },
    { enabled: sessionId !== undefined && mayReadSession },
  );
  const ownerId = applicationId ?? session.data?.applicationId;
  const application = useQuery(
    ApplicationService.method.getApplication,
    { id: ownerId ?? "" },
    { enabled: ownerId !== undefined && mayReadApplication },
  );
  const authorizerId = session.data?.limitedByAuthorizer ? session.data.authorizedBy : undefined;
  const authorizer = useQuery(
    ApplicationService.method.getApplication,
    { id: authorizerId ?? "" },
    { enabled: authorizerId !== undefined && mayReadApplication },
  );
  // biome-ignore lint/correctness/useExhaustiveDependencies: with each decision, and not with what comes of looking again.
  useEffect(() => {
    for (const query of [session, application, authorizer].filter(({ data }) => data)) {
      void query.refetch();
    }
  }, [decidedAt]);
  const missing = missingFor(sessionId !== undefined ? mayReadSession : mayReadApplication);
  const queries = [session, application, authorizer];
  const isLoading = queries.some((query) => query.isLoading);
  const error = session.error ?? application.error ?? authorizer.error;

  function missingFor(isAllowed: boolean): string | undefined {
    const needed = sessionId !== undefined ? "session:read" : "application:read";
    const isSought = sessionId !== undefined || applicationId !== undefined;
    return isSought && !isAllowed ? needed : undefined;
  }

  const owner = application.data;
  const grants = sessionId !== undefined ? session.data : owner;
  return {
    isLoading,
    error,
    ...(missing !== undefined && { missing }),
    ...(grants &&
      !isLoading && {
        subject: {
          grants,
          ...(owner && { application: owner }),
          ...(sessionId !== undefined && session.data && { session: session.data }),
          ...(authorizerId !== undefined && {
            authorizer: authorizer.data
              ? { application: authorizer.data, grants: authorizer.data }
              : {},
          }),
        },
      }),
  };
}

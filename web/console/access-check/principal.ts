import type { ConnectError } from "@connectrpc/connect";
import { useQuery } from "@connectrpc/connect-query";
import { useEffect } from "react";
import type { AccessRule } from "../../../gen/latchkey/v1/access_rule_pb.js";
import type { WhoAmIResponse } from "../../../gen/latchkey/v1/access_service_pb.js";
import {
  type Application,
  ApplicationService,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import { type Session, SessionService } from "../../../gen/latchkey/v1/session_service_pb.js";
import { useSignedInKey } from "../sign-in/signed-in-key.js";

/** The principal of a check, as far as the signed-in key may read it. */
export interface Principal {
  /** Absent without permission to read it. */
  readonly application?: Pick<
    Application,
    "id" | "name" | "type" | "status" | "expiresAt" | "allowedOrigins" | "allowedCidrs"
  >;
  readonly session?: Pick<Session, "id" | "state" | "expiresAt">;
  readonly grants: Granted;
  /** The application that authorized the session and limits it. */
  readonly authorizer?: Authorizer;
}

interface Authorizer {
  /** Absent without permission to read it. */
  readonly application?: Pick<Application, "id" | "name" | "type" | "status" | "expiresAt">;
  readonly grants?: Granted;
}

interface Granted {
  readonly permissions: readonly string[];
  readonly rules: readonly AccessRule[];
}

export function principalOfOwnKey(me: WhoAmIResponse): Principal {
  const { applicationId: id, name, type, allowedOrigins, allowedCidrs, sessionId, expiresAt } = me;
  const application = { id, name, type, status: "enabled", allowedOrigins, allowedCidrs };
  const state = me.authorized ? "authorized" : "unauthorized";
  return {
    application: sessionId === undefined && expiresAt ? { ...application, expiresAt } : application,
    ...(sessionId !== undefined && {
      session: { id: sessionId, state, ...(expiresAt && { expiresAt }) },
    }),
    grants: me,
    ...(me.authorizer && { authorizer: { grants: me.authorizer } }),
  };
}

interface PrincipalReference {
  readonly applicationId?: string | undefined;
  readonly sessionId?: string | undefined;
  /** Changes with each decision, to refetch the principal. */
  readonly decidedAt?: number;
}

interface FoundPrincipal {
  readonly principal?: Principal;
  readonly isLoading: boolean;
  readonly error: ConnectError | null;
  /** The permission needed to read the rules. */
  readonly missing?: string;
}

/** Loads an application or a session, if the signed-in key may read it. */
export function usePrincipal({
  applicationId,
  sessionId,
  decidedAt,
}: PrincipalReference): FoundPrincipal {
  const { may } = useSignedInKey();
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
  // biome-ignore lint/correctness/useExhaustiveDependencies: only on a new decision.
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
    const isRequested = sessionId !== undefined || applicationId !== undefined;
    return isRequested && !isAllowed ? needed : undefined;
  }

  const owner = application.data;
  const grants = sessionId !== undefined ? session.data : owner;
  return {
    isLoading,
    error,
    ...(missing !== undefined && { missing }),
    ...(grants &&
      !isLoading && {
        principal: {
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

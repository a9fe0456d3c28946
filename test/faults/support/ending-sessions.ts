import { type Api, keyOf } from "../../support/api/api.js";
import type { Cluster } from "./cluster.js";
import { insist } from "./insist.js";

/** An authorized session of its own application. */
interface OpenedSession {
  readonly id: string;
  readonly key: string;
  readonly applicationId: string;
}

/** The ways to revoke a session. */
export const sessionEnds: Readonly<
  Record<string, (api: Api, root: string, session: OpenedSession) => Promise<unknown>>
> = {
  "is deleted": (api, root, { id }) => api.deleteSession(root, { id }),
  "is revoked with all of its application": (api, root, { applicationId: id }) =>
    api.revokeAllSessions(root, { id }),
  "has its application deleted": (api, root, { applicationId: id }) =>
    api.deleteApplication(root, { id }),
  "has its application disabled": (api, root, { applicationId: id }) =>
    api.disableApplication(root, { id }),
};

/** The permission of such a session. */
export const sessionPermission = "application:read";

export async function openSession(
  api: Api,
  { root, granter }: Cluster["keys"],
): Promise<OpenedSession> {
  const permissions = [sessionPermission];
  const request = { name: "page", type: "public", permissions };
  const page = await insist(() => api.createApplication(root, request));
  const session = await insist(() => api.createSession(keyOf(page)));
  const { id, sessionKey: key, nonce } = session;
  const grant = () => api.authorizeSession(granter, { nonce, permissions });
  await insist(() =>
    grant().catch((error) => {
      // An earlier call without a response has used the nonce.
      if (error.reason !== "nonce_used") {
        throw error;
      }
    }),
  );
  return { id, key, applicationId: page.id };
}

import { type Api, keyOf } from "../../support/api.js";
import type { Cluster } from "./cluster.js";

/** A session that may do something, of an application of its own. */
export interface OpenedSession {
  readonly id: string;
  readonly key: string;
  readonly applicationId: string;
}

/** The ways in which a session ends before its time. */
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

/** What such a session may do. */
export const sessionPermission = "application:read";

export async function openSession(
  api: Api,
  { root, granter }: Cluster["keys"],
): Promise<OpenedSession> {
  const permissions = [sessionPermission];
  const page = await api.createApplication(root, { name: "page", type: "public", permissions });
  const { id, sessionKey: key, nonce } = await api.createSession(keyOf(page));
  await api.authorizeSession(granter, { nonce, permissions });
  return { id, key, applicationId: page.id };
}

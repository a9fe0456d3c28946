import type { Collection, Document } from "mongodb";
import { StoreUnavailable } from "../port/errors.js";
import type { SessionRecord, SessionWithApplication } from "../port/records.js";
import { applicationIdsOf, isRevoked, withApplications } from "../port/sessions.js";
import type { ApplicationStore, SessionPage, SessionQuery } from "../port/store.js";
import { byApplication, byAuthorizer, byTenant } from "./collections.js";
import type { FreshRead } from "./connect.js";
import { type SessionDocument, toSession, uuid } from "./documents.js";
import { callDriver, limits } from "./driver-call.js";
import { revokedSessions } from "./session-cleanup.js";
import { notExpired, type Time } from "./time.js";

/** The minimum batch size of further reads, after a read with revoked sessions. */
const minLaterBatch = 100;

/** The maximum number of reads for one page. */
const maxReads = 100;

interface SessionList {
  readonly documents: Collection<SessionDocument>;
  readonly applications: ApplicationStore;
  readonly time: Time;
  readonly freshRead: FreshRead;
}

/**
 * Lists sessions of a tenant, newest first. Skips sessions that were revoked
 * with their application, its epoch or their authorizer. The next read excludes
 * all sessions revoked for the same reason, so their number does not matter.
 */
export async function listSessions(
  list: SessionList,
  query: SessionQuery,
  signal?: AbortSignal,
): Promise<SessionPage> {
  const { documents, time, freshRead } = list;
  const { size } = query;
  const hint = indexFor(query);
  const items: SessionWithApplication[] = [];
  const revoked: Document[] = [];
  let { after } = query;
  for (let reads = 0; reads < maxReads; reads++) {
    const limit = reads === 0 ? size + 1 : Math.max(size + 1, minLaterBatch);
    const filter = { ...toFilter({ ...query, after }, revoked), ...notExpired(time) };
    const options = { sort: { _id: -1 }, limit, hint, signal, ...limits, ...freshRead() } as const;
    const found = await callDriver(() => documents.find(filter, options).toArray());
    const sessions = found.map(toSession);
    items.push(...(await removeRevoked(list.applications, sessions, revoked)));
    if (items.length > size || found.length < limit) {
      return { items: items.slice(0, size), more: items.length > size };
    }
    after = sessions.at(-1)?.id;
  }
  if (items.length === 0) {
    throw new StoreUnavailable("Too many revoked sessions are waiting for cleanup.");
  }
  return { items, more: true };
}

function indexFor({ applicationId, authorizedBy }: SessionQuery) {
  if (applicationId !== undefined) {
    return byApplication;
  }
  return authorizedBy === undefined ? byTenant : byAuthorizer;
}

function toFilter(query: SessionQuery, revoked: readonly Document[]): Document {
  const { tenantId, applicationId, authorizedBy, authorized, after } = query;
  return {
    tenant_id: uuid(tenantId),
    ...(applicationId !== undefined && { application_id: uuid(applicationId) }),
    ...(authorizedBy !== undefined && { authorized_by: uuid(authorizedBy) }),
    ...(authorized !== undefined && { authorized_at: { $exists: authorized } }),
    ...(after !== undefined && { _id: { $lt: uuid(after) } }),
    ...(revoked.length > 0 && { $nor: revoked }),
  };
}

/** Returns the valid sessions. Adds filters that match the revoked ones to `revoked`. */
async function removeRevoked(
  applications: ApplicationStore,
  sessions: readonly SessionRecord[],
  revoked: Document[],
): Promise<SessionWithApplication[]> {
  const ids = [...new Set(sessions.flatMap(applicationIdsOf))];
  const found = await applications.findMany(ids);
  const byId = new Map(ids.map((id, at) => [id, found[at]]));
  const causes = new Set<string>();
  const valid = sessions.flatMap((session) => {
    const { applicationId, authorizedBy = applicationId, epoch } = session;
    const found = withApplications(session, (id) => byId.get(id));
    if (found && !isRevoked(found)) {
      return found;
    }
    causes.add(byId.get(applicationId)?.sessionEpoch === epoch ? authorizedBy : applicationId);
    return [];
  });
  for (const id of causes) {
    const application = byId.get(id);
    revoked.push(revokedSessions(uuid(id), application?.sessionEpoch));
    if (!application) {
      revoked.push({ authorized_by: uuid(id) });
    }
  }
  return valid;
}

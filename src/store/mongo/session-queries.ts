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

/** How many sessions at least are read again where some of those before were dead. */
const minLaterBatch = 100;

/** How many reads one page may take. */
const maxReads = 100;

export interface SessionList {
  readonly documents: Collection<SessionDocument>;
  readonly applications: ApplicationStore;
  readonly time: Time;
  readonly freshRead: FreshRead;
}

/**
 * Reads sessions of a tenant, newest first. Of those found, the ones are left
 * out that are dead with their application, its epoch or their authorizer; the next read
 * passes over all others that are dead for the same reason, so it takes no
 * more reads where these are many.
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
  const dead: Document[] = [];
  let { after } = query;
  for (let reads = 0; reads < maxReads; reads++) {
    const limit = reads === 0 ? size + 1 : Math.max(size + 1, minLaterBatch);
    const filter = { ...toFilter({ ...query, after }, dead), ...notExpired(time) };
    const options = { sort: { _id: -1 }, limit, hint, signal, ...limits, ...freshRead() } as const;
    const found = await callDriver(() => documents.find(filter, options).toArray());
    const sessions = found.map(toSession);
    items.push(...(await removeRevoked(list.applications, sessions, dead)));
    if (items.length > size || found.length < limit) {
      return { items: items.slice(0, size), more: items.length > size };
    }
    after = sessions.at(-1)?.id;
  }
  if (items.length === 0) {
    throw new StoreUnavailable("Sessions of too many applications that ended are yet to be swept.");
  }
  return { items, more: true };
}

function indexFor({ applicationId, authorizedBy }: SessionQuery) {
  if (applicationId !== undefined) {
    return byApplication;
  }
  return authorizedBy === undefined ? byTenant : byAuthorizer;
}

function toFilter(query: SessionQuery, dead: readonly Document[]): Document {
  const { tenantId, applicationId, authorizedBy, authorized, after } = query;
  return {
    tenant_id: uuid(tenantId),
    ...(applicationId !== undefined && { application_id: uuid(applicationId) }),
    ...(authorizedBy !== undefined && { authorized_by: uuid(authorizedBy) }),
    ...(authorized !== undefined && { authorized_at: { $exists: authorized } }),
    ...(after !== undefined && { _id: { $lt: uuid(after) } }),
    ...(dead.length > 0 && { $nor: dead }),
  };
}

/** The sessions that are alive. What matches the others, and those like them, is added to `dead`. */
async function removeRevoked(
  applications: ApplicationStore,
  sessions: readonly SessionRecord[],
  dead: Document[],
): Promise<SessionWithApplication[]> {
  const ids = [...new Set(sessions.flatMap(applicationIdsOf))];
  const found = await applications.findMany(ids);
  const byId = new Map(ids.map((id, at) => [id, found[at]]));
  const ended = new Set<string>();
  const alive = sessions.flatMap((session) => {
    const { applicationId, authorizedBy = applicationId, epoch } = session;
    const there = withApplications(session, (id) => byId.get(id));
    if (there && !isRevoked(there)) {
      return there;
    }
    ended.add(byId.get(applicationId)?.sessionEpoch === epoch ? authorizedBy : applicationId);
    return [];
  });
  for (const id of ended) {
    const application = byId.get(id);
    dead.push(revokedSessions(uuid(id), application?.sessionEpoch));
    if (!application) {
      dead.push({ authorized_by: uuid(id) });
    }
  }
  return alive;
}

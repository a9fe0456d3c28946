import { type Binary, BSON, type Collection, type Document } from "mongodb";
import { isId } from "../../lib/uuid-text.js";
import { isRevoked, parentIdsOf, withParents } from "../core/liveness.js";
import type { ApplicationStore } from "../port/applications.js";
import { StoreUnavailable } from "../port/errors.js";
import type { ApplicationRecord, SessionRecord, SessionWithApplication } from "../port/records.js";
import type {
  SessionCount,
  SessionFilter,
  SessionPage,
  SessionQuery,
  SessionStore,
} from "../port/sessions.js";
import { createPageBudget } from "../port/store.js";
import { byApplication, byAuthorizer, byTenant } from "./collections.js";
import type { FreshRead } from "./connect.js";
import {
  fromUuid,
  notExpired,
  type SessionDocument,
  type Time,
  toSession,
  uuid,
  withoutLog,
} from "./documents.js";
import { callDriver, limitsOf } from "./driver-call.js";
import { createLookup } from "./lookup.js";
import { pageOptions, readPage } from "./read-page.js";
import { authorizedBefore, openedBefore } from "./session-cleanup.js";

interface SessionStoreOptions {
  readonly documents: Collection<SessionDocument>;
  readonly applications: ApplicationStore;
  readonly time: Time;
  readonly freshRead: FreshRead;
  readonly drainExpiredCount: SessionStore["drainExpiredCount"];
}

export function createSessionStore(options: SessionStoreOptions): SessionStore {
  const { documents, applications, time, freshRead } = options;
  const lookup = createLookup(documents, time, freshRead, toSession);

  async function find(id: string): Promise<SessionWithApplication | undefined> {
    const session = await lookup(id);
    return session && withValidApplications(session, applications.find);
  }

  /** Finds an application that is valid, or has expired and is still stored. */
  async function findStored(id: string): Promise<ApplicationRecord | undefined> {
    return (await applications.find(id)) ?? applications.findExpired(id);
  }

  return {
    find,

    // They start in the same tick, so that they share one query.
    findMany: (ids) => Promise.all(ids.map(find)),

    async findExpired(id) {
      if (!isId(id)) {
        return undefined;
      }
      const readOptions = { ...limitsOf(documents), ...freshRead() };
      const filter = { _id: uuid(id), expires_at: { $type: "date" as const } };
      const document = await callDriver(() => documents.findOne(filter, readOptions));
      if (!document) {
        return undefined;
      }
      return (await find(id)) ? undefined : withValidApplications(toSession(document), findStored);
    },

    list: (query, signal) => listSessions(options, query, signal),

    count: (filter, limit, signal) => countSessions(options, filter, limit, signal),

    drainExpiredCount: options.drainExpiredCount,
  };
}

/** Finds the applications that a session depends on. Returns `undefined` if one of them was revoked or has expired. */
async function withValidApplications(
  session: SessionRecord,
  find: ApplicationStore["find"],
): Promise<SessionWithApplication | undefined> {
  const ids = parentIdsOf("session", session);
  const applications = await Promise.all(ids.map(find));
  const found = withParents("session", session, (id) => applications[ids.indexOf(id)]);
  return isRevoked("session", found) ? undefined : found;
}

/** The minimum batch size of further reads, after a read with revoked sessions. */
const minLaterBatch = 100;

/** The maximum number of reads for one page. A read ends early at large sessions. */
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
async function listSessions(
  list: SessionList,
  query: SessionQuery,
  signal?: AbortSignal,
): Promise<SessionPage> {
  const { documents, time, freshRead } = list;
  const { size } = query;
  const hint = indexFor(query);
  const items: SessionWithApplication[] = [];
  const budget = createPageBudget();
  const revoked: Document[] = [];
  let { after } = query;
  for (let reads = 0; reads < maxReads; reads++) {
    const limit = reads === 0 ? size + 1 : Math.max(size + 1, minLaterBatch);
    const filter = { ...toFilter({ ...query, after }, revoked), ...notExpired(time) };
    const found = documents.find<Uint8Array>(filter, {
      sort: { _id: -1 },
      hint,
      signal,
      // One of these documents shows whether others follow.
      ...pageOptions(limit - 1),
      projection: withoutLog,
      ...limitsOf(documents),
      ...freshRead(),
    });
    const sizes = new Map<string, number>();
    const read = await callDriver(() =>
      readPage(found, limit, (document) => {
        const session = toSession(BSON.deserialize(document) as SessionDocument);
        sizes.set(session.id, document.length);
        return session;
      }),
    );
    for (const valid of await removeRevoked(list.applications, read.items, revoked)) {
      if (items.length === size || !budget.tryAdd(sizes.get(valid.session.id) as number)) {
        return { items, more: true };
      }
      items.push(valid);
    }
    if (!read.more && read.items.length < limit) {
      return { items, more: false };
    }
    after = read.items.at(-1)?.id;
  }
  if (items.length === 0) {
    throw new StoreUnavailable("Too many revoked sessions are waiting for cleanup.");
  }
  return { items, more: true };
}

interface SessionGroup {
  readonly _id: {
    readonly application_id: Binary;
    readonly authorized_by?: Binary;
    readonly epoch: number;
    readonly authorization_epoch: number;
  };
  readonly count: number;
}

/**
 * Counts sessions in groups that are revoked together, so that only their
 * applications are read. The groups also decide what the index does not contain.
 */
async function countSessions(
  { documents, applications, time, freshRead }: SessionList,
  filter: SessionFilter,
  limit: number,
  signal?: AbortSignal,
): Promise<SessionCount> {
  const { tenantId, applicationId, authorizedBy, authorized } = filter;
  const indexed = applicationId === undefined ? { authorizedBy } : { applicationId };
  const _id = {
    application_id: "$application_id",
    authorized_by: "$authorized_by",
    epoch: "$epoch",
    authorization_epoch: "$authorization_epoch",
  };
  const pipeline = [
    { $match: { ...toFilter({ tenantId, ...indexed }), ...notExpired(time) } },
    { $sort: { _id: -1 } },
    { $limit: limit + 1 },
    { $group: { _id, count: { $sum: 1 } } },
  ];
  const options = { hint: indexFor(filter), signal, ...limitsOf(documents), ...freshRead() };
  const found = await callDriver(() =>
    documents.aggregate<SessionGroup>(pipeline, options).toArray(),
  );
  // Only these fields decide whether sessions are revoked.
  const toGroup = ({ _id, count }: SessionGroup) => ({
    applicationId: fromUuid(_id.application_id),
    authorizedBy: _id.authorized_by && fromUuid(_id.authorized_by),
    epoch: _id.epoch,
    authorizationEpoch: _id.authorization_epoch,
    count,
  });
  const groups = found.map((each) => toGroup(each) as SessionRecord & { readonly count: number });
  const ids = [...new Set(groups.flatMap((group) => parentIdsOf("session", group)))];
  const read = await applications.findMany(ids);
  const byId = new Map(ids.map((id, index) => [id, read[index]]));
  const sum = (counted: typeof groups) => counted.reduce((total, { count }) => total + count, 0);
  const matching = groups.filter(
    (group) =>
      (authorizedBy ?? group.authorizedBy) === group.authorizedBy &&
      (authorized ?? group.authorizedBy !== undefined) === (group.authorizedBy !== undefined),
  );
  const open = matching.filter(
    (group) =>
      !isRevoked(
        "session",
        withParents("session", group, (id) => byId.get(id)),
      ),
  );
  return { open: Math.min(sum(open), limit), isComplete: sum(groups) <= limit };
}

function indexFor({ applicationId, authorizedBy }: SessionFilter) {
  if (applicationId !== undefined) {
    return byApplication;
  }
  return authorizedBy === undefined ? byTenant : byAuthorizer;
}

function toFilter(
  query: SessionFilter & Pick<SessionQuery, "after">,
  revoked: readonly Document[] = [],
): Document {
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
  const ids = [...new Set(sessions.flatMap((session) => parentIdsOf("session", session)))];
  const found = await applications.findMany(ids);
  const byId = new Map(ids.map((id, index) => [id, found[index]]));
  const causes = new Map<string, Document>();
  const valid = sessions.flatMap((session) => {
    const found = withParents("session", session, (id) => byId.get(id));
    if (found && !isRevoked("session", found)) {
      return found;
    }
    const { applicationId, authorizedBy } = session;
    const application = byId.get(applicationId);
    if (authorizedBy !== undefined && application?.sessionEpoch === session.epoch) {
      causes.set(authorizedBy, authorizedBefore(uuid(authorizedBy), byId.get(authorizedBy)));
    } else {
      causes.set(applicationId, openedBefore(uuid(applicationId), application));
    }
    return [];
  });
  revoked.push(...causes.values());
  return valid;
}

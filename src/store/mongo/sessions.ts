import type { Collection } from "mongodb";
import { isId } from "../../lib/uuid.js";
import type { ApplicationRecord, SessionRecord, SessionWithApplication } from "../port/records.js";
import { applicationIdsOf, isRevoked, withApplications } from "../port/sessions.js";
import type { ApplicationStore, SessionStore, Store } from "../port/store.js";
import type { FreshRead } from "./connect.js";
import {
  date,
  grantFields,
  hash,
  literal,
  type SessionDocument,
  toSession,
  uuid,
} from "./documents.js";
import { callDriver, limits, limitsIn } from "./driver-call.js";
import { createLookup } from "./lookup.js";
import { listSessions } from "./session-queries.js";
import { createSessionQuotas } from "./session-quotas.js";
import { insert, notExpired, type Time } from "./time.js";
import type { ChangeWork, Transactions } from "./transactions.js";

export interface SessionStoreOptions {
  readonly documents: Collection<SessionDocument>;
  readonly applications: ApplicationStore;
  readonly time: Time;
  readonly freshRead: FreshRead;
  readonly transactions: Transactions;
  readonly now: Store["now"];
  readonly takeExpired: SessionStore["takeExpired"];
}

export function createSessionStore(options: SessionStoreOptions): SessionStore {
  const { documents, applications, time, freshRead, transactions } = options;
  const lookup = createLookup(documents, time, freshRead, toSession);
  const quotas = createSessionQuotas(documents, options.now);

  async function find(id: string): Promise<SessionWithApplication | undefined> {
    const session = await lookup(id);
    return session && withLiveApplications(session, applications.find);
  }

  /** Finds an application that is alive, or has expired and is still kept. */
  async function findKept(id: string): Promise<ApplicationRecord | undefined> {
    return (await applications.find(id)) ?? applications.findExpired(id);
  }

  /** Whether a session that is just authorized can be: of who does that the transaction knows. */
  async function isAuthorizable(session: SessionRecord): Promise<boolean> {
    const { applicationId, epoch } = session;
    return (await applications.find(applicationId))?.sessionEpoch === epoch;
  }

  return {
    async create(session, trail) {
      const { quota } = session;
      let leaveQuota = () => {};
      const work: ChangeWork<SessionRecord> = async (transaction) => {
        const application = await applications.find(session.applicationId);
        if (application?.tenantId !== session.tenantId) {
          return undefined;
        }
        if (quota !== undefined) {
          leaveQuota = await quotas.reserve(application, quota);
        }
        const fields = {
          _id: uuid(session.id),
          tenant_id: uuid(session.tenantId),
          application_id: uuid(session.applicationId),
          // Where sessions are revoked meanwhile, it is born dead.
          epoch: application.sessionEpoch,
          key_hash: hash(session.keyHash),
          nonce_hash: hash(session.nonceHash),
          permissions: [],
          rules: [],
        };
        const now = time();
        const moments = { created_at: now, expires_at: { $add: [now, session.ttl] } };
        return toSession(await insert(documents, fields, moments, transaction));
      };
      // Not kept between two attempts: others would wait for a place, and keep the next from its turn.
      return transactions.change(session.id, trail, work, () => {
        leaveQuota();
        leaveQuota = () => {};
      });
    },

    find,

    // They start in one turn, so that they share their finds.
    findMany: (ids) => Promise.all(ids.map(find)),

    async findExpired(id) {
      if (!isId(id)) {
        return undefined;
      }
      const reading = { ...limits, ...freshRead() };
      const document = await callDriver(() => documents.findOne({ _id: uuid(id) }, reading));
      if (!document) {
        return undefined;
      }
      return (await find(id)) ? undefined : withLiveApplications(toSession(document), findKept);
    },

    async authorize(grant, trail) {
      const shown = {
        _id: uuid(grant.sessionId),
        tenant_id: uuid(grant.tenantId),
        nonce_hash: { $in: grant.nonceHashes.map(hash) },
        ...notExpired(time),
      };
      const fields = literal({
        ...grantFields(grant),
        authorized_by: uuid(grant.authorizedBy),
        expires_at: date(grant.expiresAt),
      });
      let isUsed = false;
      const authorized = await transactions.change(
        grant.sessionId,
        trail,
        async (transaction, confirmReads) => {
          const spent = await callDriver(() =>
            documents.findOneAndUpdate(
              { ...shown, authorized_at: { $exists: false } },
              [{ $set: { ...fields, authorized_at: time() } }],
              { returnDocument: "after", ...limitsIn(transaction) },
            ),
          );
          if (spent) {
            // Asked last, at no loss: a nonce spent on a dead session opens nothing.
            const session = toSession(spent);
            return (await isAuthorizable(session)) ? session : undefined;
          }
          const found = await callDriver(() => documents.findOne(shown, limitsIn(transaction)));
          const there = found && (await withLiveApplications(toSession(found), applications.find));
          isUsed = Boolean(there);
          await confirmReads();
          return undefined;
        },
      );
      if (authorized) {
        return "authorized";
      }
      return isUsed ? "used" : "unknown";
    },

    list: (query, signal) => listSessions(options, query, signal),

    async delete(tenantId, id, check, trail) {
      const filter = { _id: uuid(id), tenant_id: uuid(tenantId), ...notExpired(time) };
      const deleted = await transactions.change(id, trail, async (transaction, confirmReads) => {
        if (check) {
          // Before anything is written: what throws later would not take it back.
          const current = await callDriver(() => documents.findOne(filter, limitsIn(transaction)));
          const there =
            current && (await withLiveApplications(toSession(current), applications.find));
          if (there) {
            check(there);
          }
        }
        const found = await callDriver(() =>
          documents.findOneAndDelete(filter, limitsIn(transaction)),
        );
        const session = found && toSession(found);
        if (!session) {
          await confirmReads();
        }
        // Asked last, at no loss: whoever deletes a dead session finds none.
        return session && (await withLiveApplications(session, applications.find))
          ? session
          : undefined;
      });
      return deleted !== undefined;
    },

    takeExpired: options.takeExpired,
  };
}

/** Finds the applications that a session ends with, all at once; `undefined` where it has ended with one of them. */
async function withLiveApplications(
  session: SessionRecord,
  find: ApplicationStore["find"],
): Promise<SessionWithApplication | undefined> {
  const ids = applicationIdsOf(session);
  const applications = await Promise.all(ids.map(find));
  const found = withApplications(session, (id) => applications[ids.indexOf(id)]);
  return isRevoked(found) ? undefined : found;
}

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

interface SessionStoreOptions {
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
    return session && withValidApplications(session, applications.find);
  }

  /** Finds an application that is valid, or has expired and is still stored. */
  async function findStored(id: string): Promise<ApplicationRecord | undefined> {
    return (await applications.find(id)) ?? applications.findExpired(id);
  }

  /** Whether the application of a session is still valid. The transaction checks the authorizer. */
  async function isAuthorizable(session: SessionRecord): Promise<boolean> {
    const { applicationId, epoch } = session;
    return (await applications.find(applicationId))?.sessionEpoch === epoch;
  }

  return {
    async create(session, audit) {
      const { quota } = session;
      let releaseQuota = () => {};
      const work: ChangeWork<SessionRecord> = async (transaction) => {
        const application = await applications.find(session.applicationId);
        if (application?.tenantId !== session.tenantId) {
          return undefined;
        }
        if (quota !== undefined) {
          releaseQuota = await quotas.reserve(application, quota);
        }
        const fields = {
          _id: uuid(session.id),
          tenant_id: uuid(session.tenantId),
          application_id: uuid(session.applicationId),
          // If the sessions are revoked meanwhile, this one is created as revoked.
          epoch: application.sessionEpoch,
          key_hash: hash(session.keyHash),
          nonce_hash: hash(session.nonceHash),
          permissions: [],
          rules: [],
        };
        const now = time();
        const timestamps = { created_at: now, expires_at: { $add: [now, session.ttl] } };
        return toSession(await insert(documents, fields, timestamps, transaction));
      };
      // Released between attempts: others would wait for the reservation and delay the next attempt.
      return transactions.change(session.id, audit, work, () => {
        releaseQuota();
        releaseQuota = () => {};
      });
    },

    find,

    // They start in the same tick, so that they share one query.
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
      return (await find(id)) ? undefined : withValidApplications(toSession(document), findStored);
    },

    async authorize(grant, audit) {
      const filter = {
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
        audit,
        async (transaction, confirmReads) => {
          const spent = await callDriver(() =>
            documents.findOneAndUpdate(
              { ...filter, authorized_at: { $exists: false } },
              [{ $set: { ...fields, authorized_at: time() } }],
              { returnDocument: "after", ...limitsIn(transaction) },
            ),
          );
          if (spent) {
            // Checked last: a nonce used on a revoked session grants nothing.
            const session = toSession(spent);
            return (await isAuthorizable(session)) ? session : undefined;
          }
          const found = await callDriver(() => documents.findOne(filter, limitsIn(transaction)));
          const valid = found && (await withValidApplications(toSession(found), applications.find));
          isUsed = Boolean(valid);
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

    async delete(tenantId, id, check, audit) {
      const filter = { _id: uuid(id), tenant_id: uuid(tenantId), ...notExpired(time) };
      const deleted = await transactions.change(id, audit, async (transaction, confirmReads) => {
        if (check) {
          // Before the first write: throwing later would not undo a change without a transaction.
          const current = await callDriver(() => documents.findOne(filter, limitsIn(transaction)));
          const valid =
            current && (await withValidApplications(toSession(current), applications.find));
          if (valid) {
            check(valid);
          }
        }
        const found = await callDriver(() =>
          documents.findOneAndDelete(filter, limitsIn(transaction)),
        );
        const session = found && toSession(found);
        if (!session) {
          await confirmReads();
        }
        // Checked last: deleting a revoked session returns "not found".
        return session && (await withValidApplications(session, applications.find))
          ? session
          : undefined;
      });
      return deleted !== undefined;
    },

    takeExpired: options.takeExpired,
  };
}

/** Finds the applications that a session depends on. Returns `undefined` if one of them was revoked or has expired. */
async function withValidApplications(
  session: SessionRecord,
  find: ApplicationStore["find"],
): Promise<SessionWithApplication | undefined> {
  const ids = applicationIdsOf(session);
  const applications = await Promise.all(ids.map(find));
  const found = withApplications(session, (id) => applications[ids.indexOf(id)]);
  return isRevoked(found) ? undefined : found;
}

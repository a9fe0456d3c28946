import type { Collection } from "mongodb";
import { isId } from "../../ids.js";
import type { ApplicationStore, SessionStore, SessionWithApplication } from "../store.js";
import {
  date,
  fromUuid,
  hash,
  literal,
  type SessionDocument,
  toRuleDocument,
  toSession,
  uuid,
} from "./documents.js";
import { insert } from "./insert.js";
import { createLookup } from "./lookup.js";
import { limits, reach } from "./reach.js";
import { alive, type Time } from "./time.js";

export function createSessionStore(
  documents: Collection<SessionDocument>,
  applications: ApplicationStore,
  time: Time,
): SessionStore {
  const lookup = createLookup(documents, time, toSession);

  async function find(id: string): Promise<SessionWithApplication | undefined> {
    const session = await lookup(id);
    const application = session && (await applications.find(session.applicationId));
    return application && { session, application };
  }

  return {
    async create(session) {
      const application = await applications.find(session.applicationId);
      if (application?.tenantId !== session.tenantId) {
        return undefined;
      }
      const fields = {
        _id: uuid(session.id),
        tenant_id: uuid(session.tenantId),
        application_id: uuid(session.applicationId),
        key_hash: hash(session.keyHash),
        nonce_hash: hash(session.nonceHash),
        permissions: [],
        rules: [],
      };
      const now = time();
      const moments = { created_at: now, expires_at: { $add: [now, session.ttl] } };
      return toSession(await insert(documents, fields, moments));
    },

    find,

    // They start in one turn, so that they share their finds.
    findMany: (ids) => Promise.all(ids.map(find)),

    async findExpired(id) {
      if (!isId(id)) {
        return undefined;
      }
      const document = await reach(() => documents.findOne({ _id: uuid(id) }, limits));
      if (!document) {
        return undefined;
      }
      const session = toSession(document);
      const { applicationId } = session;
      const ended = await applications.findExpired(applicationId);
      if (ended) {
        return { session, application: ended };
      }
      const application = await applications.find(applicationId);
      const isAlive = application && (await lookup(id));
      return application && !isAlive ? { session, application } : undefined;
    },

    async authorize(grant) {
      const shown = {
        _id: uuid(grant.sessionId),
        tenant_id: uuid(grant.tenantId),
        nonce_hash: { $in: grant.nonceHashes.map(hash) },
      };
      const fields = literal({
        permissions: grant.permissions,
        rules: grant.rules.map(toRuleDocument),
        authorized_by: uuid(grant.authorizedBy),
        expires_at: date(grant.expiresAt),
      });
      const options = { projection: { application_id: 1 }, ...limits };
      const spent = await reach(() =>
        documents.findOneAndUpdate(
          { ...shown, authorized_at: { $exists: false }, ...alive(time) },
          [{ $set: { ...fields, authorized_at: time() } }],
          options,
        ),
      );
      const session =
        spent ?? (await reach(() => documents.findOne({ ...shown, ...alive(time) }, options)));
      // Asked last, at no loss: a nonce spent on a dead session opens nothing.
      const application = session && (await applications.find(fromUuid(session.application_id)));
      if (!application) {
        return "unknown";
      }
      return spent ? "authorized" : "used";
    },
  };
}

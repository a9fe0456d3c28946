import { randomBytes, randomUUID } from "node:crypto";
import type { NewResponse } from "../../../src/store/port/change.js";
import type { ApplicationRecord, SessionRecord } from "../../../src/store/port/records.js";
import { audit } from "../../support/store/audit.js";
import type { ChangeContext, OperableStore } from "../../support/store/operations.js";
import { anEvent } from "./event-fixtures.js";
import { aGrant, anApplication, aSession, createWithSession, hour } from "./fixtures.js";

type AnyRecord = ApplicationRecord | SessionRecord;
type AnyContext = ChangeContext<AnyRecord>;

/** A prepared change with audit events. */
interface AuditedChange {
  readonly tenantId: string;
  /** The id of the changed record. */
  readonly id: string;
  /** Makes the change through any handle on the same data. */
  make(store: OperableStore, context: AnyContext): Promise<unknown>;
  /** Attempts that are refused. */
  readonly refusals: readonly ((context: AnyContext) => Promise<unknown>)[];
  tookEffect(): Promise<boolean>;
}

/** Every kind of change that has an audit event. */
export const auditedChanges: Record<string, (store: OperableStore) => Promise<AuditedChange>> = {
  async "creation of an application"(store) {
    const application = anApplication();
    const { id, tenantId } = application;
    const taken = await store.applications.create(anApplication(), audit.created);
    return {
      tenantId,
      id,
      make: ({ applications }, context) => applications.create(application, context),
      refusals: [(context) => store.applications.create({ ...application, id: taken.id }, context)],
      tookEffect: async () => (await store.applications.find(id)) !== undefined,
    };
  },

  async "update of an application"(store) {
    const { id, tenantId } = await store.applications.create(anApplication(), audit.created);
    const change = () => ({ name: "till", modifiedBy: id });
    const expired = await store.applications.create(
      anApplication({ tenantId, expiresAt: 0 }),
      audit.created,
    );
    return {
      tenantId,
      id,
      make: ({ applications }, context) => applications.update(tenantId, id, change, context),
      refusals: [
        (context) => store.applications.update(tenantId, id, refuse, context),
        (context) => store.applications.update(randomUUID(), id, change, context),
        (context) => store.applications.update(tenantId, randomUUID(), change, context),
        (context) => store.applications.update(tenantId, expired.id, change, context),
      ],
      tookEffect: async () => (await store.applications.find(id))?.name === "till",
    };
  },

  async "deletion of an application"(store) {
    const { id, tenantId } = await store.applications.create(anApplication(), audit.created);
    return {
      tenantId,
      id,
      make: ({ applications }, context) => applications.delete(tenantId, id, context),
      refusals: [
        (context) => store.applications.delete(tenantId, id, context, refuse),
        (context) => store.applications.delete(randomUUID(), id, context),
        (context) => store.applications.delete(tenantId, randomUUID(), context),
      ],
      tookEffect: async () => (await store.applications.find(id)) === undefined,
    };
  },

  async "authorization of a session"(store) {
    const { application, session } = await createWithSession(store);
    const used = aSession(application);
    await store.sessions.create(used);
    await store.sessions.authorize(aGrant(used), audit.authorized);
    const grant = aGrant(session);
    return {
      tenantId: session.tenantId,
      id: session.id,
      make: ({ sessions }, context) => sessions.authorize(grant, context),
      refusals: [
        (context) =>
          store.sessions.authorize({ ...grant, nonceHashes: [randomBytes(32)] }, context),
        (context) => store.sessions.authorize({ ...grant, tenantId: randomUUID() }, context),
        (context) => store.sessions.authorize(aGrant(used), context),
      ],
      tookEffect: async () => {
        const found = await store.sessions.find(session.id);
        return found?.session.authorizedAt !== undefined;
      },
    };
  },

  async "deletion of a session"(store) {
    const { session } = await createWithSession(store);
    const { id, tenantId } = session;
    return {
      tenantId,
      id,
      make: ({ sessions }, context) => sessions.delete(tenantId, id, context),
      refusals: [
        (context) => store.sessions.delete(randomUUID(), id, context),
        (context) => store.sessions.delete(tenantId, randomUUID(), context),
      ],
      tookEffect: async () => (await store.sessions.find(id)) === undefined,
    };
  },
};

/** Changes that the audit log does not record. */
export const unauditedChanges: typeof auditedChanges = {
  async "creation of a session"(store) {
    const application = await store.applications.create(anApplication(), audit.created);
    const session = aSession(application);
    return {
      tenantId: application.tenantId,
      id: session.id,
      make: ({ sessions }, context) => sessions.create(session, context),
      refusals: [
        (context) => store.sessions.create({ ...session, applicationId: randomUUID() }, context),
        (context) => store.sessions.create({ ...session, tenantId: randomUUID() }, context),
      ],
      tookEffect: async () => (await store.sessions.find(session.id)) !== undefined,
    };
  },
};

function refuse(): never {
  throw new Error("refused");
}

export function anIdempotencyId(): string {
  return randomBytes(32).toString("hex");
}

export function aResponse(fields: Partial<NewResponse> = {}): NewResponse {
  return { sealed: randomBytes(100), ttl: hour, ...fields };
}

/** One event about the changed record, and a response to store if there is an idempotency id. */
export function aChangeContext(idempotencyId?: string, response = aResponse()): AnyContext {
  return {
    idempotencyId,
    eventFor: ({ id, tenantId, version }) =>
      anEvent({ tenantId, target: { applicationId: id }, endsAt: version }),
    responseFor: () => (idempotencyId === undefined ? undefined : response),
  };
}

/** Stores a response with a change of an unrelated application. */
export async function storeResponse(
  store: OperableStore,
  idempotencyId: string,
  response: NewResponse,
): Promise<void> {
  const { id, tenantId } = await store.applications.create(anApplication(), audit.created);
  const context = { ...audit.deleted, idempotencyId, responseFor: () => response };
  await store.applications.delete(tenantId, id, context);
}

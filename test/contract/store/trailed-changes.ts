import { randomBytes, randomUUID } from "node:crypto";
import type { ChangeContext, NewResponse } from "../../../src/store/port/change-context.js";
import type { ApplicationRecord, SessionRecord } from "../../../src/store/port/records.js";
import type { Store } from "../../../src/store/port/store.js";
import { anEvent } from "./event-fixtures.js";
import { aGrant, anApplication, aSession, createBoth, hour } from "./fixtures.js";

type AnyRecord = ApplicationRecord | SessionRecord;
type AnyTrail = ChangeContext<AnyRecord>;

/** A change that leaves a trail, ready to be made. */
interface TrailedChange {
  readonly tenantId: string;
  /** The id of the record that it is about. */
  readonly id: string;
  /** Makes the change, through any handle on the data. */
  make(store: Store, trail: AnyTrail): Promise<unknown>;
  /** Tries the change in ways that are refused. */
  readonly refusals: readonly ((trail: AnyTrail) => Promise<unknown>)[];
  tookEffect(): Promise<boolean>;
}

/** Every kind of change that may leave a trail. */
export const trailedChanges: Record<string, (store: Store) => Promise<TrailedChange>> = {
  async "creation of an application"(store) {
    const application = anApplication();
    const { id, tenantId } = application;
    const taken = await store.applications.create(anApplication());
    return {
      tenantId,
      id,
      make: ({ applications }, trail) => applications.create(application, trail),
      refusals: [(trail) => store.applications.create({ ...application, id: taken.id }, trail)],
      tookEffect: async () => (await store.applications.find(id)) !== undefined,
    };
  },

  async "update of an application"(store) {
    const { id, tenantId } = await store.applications.create(anApplication());
    const change = () => ({ name: "till", modifiedBy: id });
    const ended = await store.applications.create(anApplication({ tenantId, expiresAt: 0 }));
    return {
      tenantId,
      id,
      make: ({ applications }, trail) => applications.update(tenantId, id, change, trail),
      refusals: [
        (trail) => store.applications.update(tenantId, id, refuse, trail),
        (trail) => store.applications.update(randomUUID(), id, change, trail),
        (trail) => store.applications.update(tenantId, randomUUID(), change, trail),
        (trail) => store.applications.update(tenantId, ended.id, change, trail),
      ],
      tookEffect: async () => (await store.applications.find(id))?.name === "till",
    };
  },

  async "deletion of an application"(store) {
    const { id, tenantId } = await store.applications.create(anApplication());
    return {
      tenantId,
      id,
      make: ({ applications }, trail) => applications.delete(tenantId, id, undefined, trail),
      refusals: [
        (trail) => store.applications.delete(tenantId, id, refuse, trail),
        (trail) => store.applications.delete(randomUUID(), id, undefined, trail),
        (trail) => store.applications.delete(tenantId, randomUUID(), undefined, trail),
      ],
      tookEffect: async () => (await store.applications.find(id)) === undefined,
    };
  },

  async "creation of a session"(store) {
    const application = await store.applications.create(anApplication());
    const session = aSession(application);
    return {
      tenantId: application.tenantId,
      id: session.id,
      make: ({ sessions }, trail) => sessions.create(session, trail),
      refusals: [
        (trail) => store.sessions.create({ ...session, applicationId: randomUUID() }, trail),
        (trail) => store.sessions.create({ ...session, tenantId: randomUUID() }, trail),
      ],
      tookEffect: async () => (await store.sessions.find(session.id)) !== undefined,
    };
  },

  async "authorization of a session"(store) {
    const { application, session } = await createBoth(store);
    const used = aSession(application);
    await store.sessions.create(used);
    await store.sessions.authorize(aGrant(used));
    const grant = aGrant(session);
    return {
      tenantId: session.tenantId,
      id: session.id,
      make: ({ sessions }, trail) => sessions.authorize(grant, trail),
      refusals: [
        (trail) => store.sessions.authorize({ ...grant, nonceHashes: [randomBytes(32)] }, trail),
        (trail) => store.sessions.authorize({ ...grant, tenantId: randomUUID() }, trail),
        (trail) => store.sessions.authorize(aGrant(used), trail),
      ],
      tookEffect: async () => {
        const found = await store.sessions.find(session.id);
        return found?.session.authorizedAt !== undefined;
      },
    };
  },

  async "deletion of a session"(store) {
    const { session } = await createBoth(store);
    const { id, tenantId } = session;
    return {
      tenantId,
      id,
      make: ({ sessions }, trail) => sessions.delete(tenantId, id, undefined, trail),
      refusals: [
        (trail) => store.sessions.delete(randomUUID(), id, undefined, trail),
        (trail) => store.sessions.delete(tenantId, randomUUID(), undefined, trail),
      ],
      tookEffect: async () => (await store.sessions.find(id)) === undefined,
    };
  },
};

function refuse(): never {
  throw new Error("You may not.");
}

export function anAnswerId(): string {
  return randomBytes(32).toString("hex");
}

export function anAnswer(fields: Partial<NewResponse> = {}): NewResponse {
  return { sealed: randomBytes(100), ttl: hour, ...fields };
}

/** A trail of one event, which tells of the record, and of an answer where there is an id for it. */
export function aTrail(answerId?: string, answer = anAnswer()): AnyTrail {
  return {
    idempotencyId: answerId,
    entriesFor({ id, tenantId, version }) {
      const event = anEvent({ tenantId, target: { applicationId: id }, count: version });
      return { events: [event], ...(answerId && { response: answer }) };
    },
  };
}

/** Keeps an answer, with a change that matters to nobody. */
export async function keepAnswer(
  store: Store,
  answerId: string,
  answer: NewResponse,
): Promise<void> {
  const { id, tenantId } = await store.applications.create(anApplication());
  const trail = { idempotencyId: answerId, entriesFor: () => ({ events: [], response: answer }) };
  await store.applications.delete(tenantId, id, undefined, trail);
}

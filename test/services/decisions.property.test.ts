import { randomBytes, randomUUID } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { ApplicationService } from "../../gen/latchkey/v1/application_service_pb.js";
import { SessionService } from "../../gen/latchkey/v1/session_service_pb.js";
import type { Caller } from "../../src/auth/caller.js";
import { createKeyring, generateKey } from "../../src/auth/keys.js";
import { readSettings } from "../../src/config/settings.js";
import { managerPermissions } from "../../src/contract/grants.js";
import { Problem } from "../../src/errors.js";
import { createApplicationHandlers } from "../../src/services/applications/handlers.js";
import { createSessionHandlers } from "../../src/services/sessions/handlers.js";
import {
  type ApplicationRecord,
  type NewApplication,
  newApplication,
  newSession,
  type SessionRecord,
  type SessionWithApplication,
} from "../../src/store/port/records.js";
import { anApplication } from "../contract/store/fixtures.js";
import {
  contextOf,
  createDecidingHandlers,
  decideOn,
  requestOf,
  type Situation,
} from "../support/services/decisions.js";

const createdAt = Date.UTC(2030, 0);
const tenantId = randomUUID();
const keyring = createKeyring();
const { sessionQuota: defaultQuota, unauthorizedSessionQuota } = readSettings({});

function application(fields: Partial<NewApplication> = {}): ApplicationRecord {
  return newApplication(anApplication({ tenantId, ...fields }), createdAt);
}

const manager: Caller = {
  application: application({
    type: "management",
    permissions: [...managerPermissions, "application:delete", "session:delete"],
  }),
};
const backend = application({ type: "private", permissions: ["token:read"] });
const shop = application({ type: "public" });

function opened(nonce: string): SessionRecord {
  const given = {
    id: randomUUID(),
    tenantId,
    applicationId: shop.id,
    keyHash: randomBytes(32),
    nonceHash: keyring.hash(nonce),
    networkHash: randomBytes(8),
    ttl: 180_000,
  };
  return newSession(given, shop.sessionEpoch, createdAt);
}

/** Makes one call of a handler on a situation, and returns what it decided. */
async function decide<H extends object>(
  createHandlers: Parameters<typeof createDecidingHandlers<H>>[0],
  situation: Situation,
  call: (handlers: H) => unknown,
) {
  const { handlers, decided } = createDecidingHandlers(createHandlers, () => situation);
  await call(handlers);
  return decided();
}

const applicationMethods = ApplicationService.method;
const sessionMethods = SessionService.method;

type ApplicationMethod = Exclude<keyof typeof applicationMethods, "listApplications">;

/** Decides a call of an application method by a manager. */
function decideApplication(
  method: ApplicationMethod,
  target: ApplicationRecord | undefined,
  fields: Record<string, unknown> = {},
  now = createdAt + 1_000,
) {
  return decide(createApplicationHandlers, { target, caller: manager, now }, (handlers) => {
    const request = requestOf(applicationMethods[method], { id: target?.id, ...fields } as never);
    const handler = handlers[method] as (request: unknown, context: unknown) => unknown;
    return handler(request, contextOf(applicationMethods[method], manager));
  });
}

describe("a decision", () => {
  const changes: [ApplicationMethod, Record<string, unknown>][] = [
    ["createApplication", { name: "new", type: "private", permissions: ["token:read"] }],
    ["updateApplication", { name: "changed", updateMask: { paths: ["name"] } }],
    ["disableApplication", {}],
    ["enableApplication", {}],
    ["deleteApplication", {}],
    ["regenerateApplicationKey", {}],
  ];

  it.each(changes)(
    "of %s is the same each time it runs on the same records",
    async (method, fields) => {
      const target = method === "createApplication" ? undefined : backend;
      const { change, decision } = await decideApplication(method, target, fields);
      const again = decideOn(change, { target, caller: manager, now: createdAt + 1_000 });
      expect({ ...again, reply: { ...again.reply } }).toEqual({
        ...decision,
        reply: { ...decision.reply },
      });
    },
  );

  it.each(changes.slice(1))(
    "of %s refuses a target that does not exist",
    async (method, fields) => {
      const id = randomUUID();
      await expect(decideApplication(method, undefined, { ...fields, id })).rejects.toMatchObject({
        problemCode: "application_not_found",
      });
    },
  );
});

describe("a new application", () => {
  it("gets the proposed id, the tenant and the creator, and the hash of the key in the reply", async () => {
    const fields = { name: "new", type: "private", permissions: ["token:read"] };
    const { change, decision } = await decideApplication("createApplication", undefined, fields);
    const { put, event, reply } = decision;
    const created = put as ApplicationRecord;
    const { id } = change.target;
    expect(created).toMatchObject({ id, tenantId, createdBy: manager.application.id });
    const { key } = reply as { key: string };
    expect(created.keys.map(({ hash }) => keyring.matches(key, hash))).toEqual([true]);
    expect(event).toMatchObject({
      kind: "application.created",
      target: { applicationId: id, keyId: created.keys[0]?.id, name: "new" },
      after: { permissions: ["token:read"] },
    });
  });
});

describe("an update", () => {
  const names = fc.string({ minLength: 1, maxLength: 200 });

  it("changes what is given and nothing else, with the next version", async () => {
    await fc.assert(
      fc.asyncProperty(names, async (name) => {
        const fields = { name, updateMask: { paths: ["name"] } };
        const { decision } = await decideApplication("updateApplication", backend, fields);
        const now = createdAt + 1_000;
        const changes = { name, modifiedBy: manager.application.id, modifiedAt: now };
        const expected = { ...backend, ...changes, version: backend.version + 1 };
        expect(decision.put ?? { ...expected, name: backend.name }).toEqual(expected);
      }),
    );
  });

  it("of equal values writes no record and no event", async () => {
    const fields = { name: backend.name, updateMask: { paths: ["name"] } };
    const { decision } = await decideApplication("updateApplication", backend, fields);
    expect([decision.put, decision.event]).toEqual([undefined, undefined]);
  });

  it("is refused if the version is another one", async () => {
    const fields = { name: "x", updateMask: { paths: ["name"] }, ifMatch: "1" };
    await expect(decideApplication("updateApplication", backend, fields)).rejects.toMatchObject({
      problemCode: "version_mismatch",
    });
  });
});

describe("opening a session", () => {
  it("limits the network before the application, both in the current epoch", async () => {
    const caller = { application: shop };
    const current = { application: { ...shop, sessionEpoch: 7 } };
    const { decision } = await decide(
      createSessionHandlers,
      { caller: current, now: createdAt },
      ({ createSession }) =>
        createSession(
          requestOf(sessionMethods.createSession, {}) as never,
          contextOf(sessionMethods.createSession, caller),
        ),
    );
    expect(decision.put).toMatchObject({ applicationId: shop.id, epoch: 7, createdAt });
    const limits = decision.provided?.map(({ quota, epoch, limit }) => [quota, epoch, limit]);
    expect(limits).toEqual([
      ["network", 7, unauthorizedSessionQuota / 10],
      ["unauthorized", 7, unauthorizedSessionQuota],
    ]);
    expect(decision.event).toBeUndefined();
  });
});

describe("authorizing a session", () => {
  const caller: Caller = { application: backend };

  function authorize(
    target: SessionWithApplication | undefined,
    nonce: string,
    expiresAt?: number,
  ) {
    const method = sessionMethods.authorizeSession;
    const fields = {
      nonce,
      permissions: ["token:read"],
      ...(expiresAt !== undefined && {
        expiresAt: { seconds: BigInt(expiresAt / 1_000), nanos: 0 },
      }),
    };
    return decide(
      createSessionHandlers,
      { target, caller, now: createdAt + 1_000 },
      ({ authorizeSession }) =>
        authorizeSession(requestOf(method, fields) as never, contextOf(method, caller)),
    );
  }

  it("spends a nonce exactly if it is that of an unauthorized session", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.boolean(),
        fc.boolean(),
        fc.boolean(),
        async (exists, isRight, isUsed) => {
          const nonce = generateKey("non", randomUUID());
          const session = {
            ...opened(isRight ? nonce : generateKey("non", randomUUID())),
            ...(isUsed && { authorizedAt: createdAt, authorizedBy: backend.id }),
          };
          const target = exists ? { session, application: shop } : undefined;
          const outcome = await authorize(target, nonce).then(
            ({ decision }) => decision.put,
            (reason) => (reason as Problem).problemCode,
          );
          const expected =
            exists && isRight
              ? isUsed
                ? "nonce_used"
                : expect.objectContaining({ authorizedBy: backend.id, permissions: ["token:read"] })
              : "nonce_not_found";
          expect(outcome).toEqual(expected);
        },
      ),
    );
  });

  it("stores no network, and keeps the expiry unless one is given", async () => {
    const nonce = generateKey("non", randomUUID());
    const session = opened(nonce);
    const target = { session, application: shop };
    const later = createdAt + 3_600_000;
    for (const [given, expiresAt] of [
      [undefined, session.expiresAt],
      [later, later],
    ] as const) {
      const { decision } = await authorize(target, nonce, given);
      const authorized = decision.put as SessionRecord;
      expect(authorized).toMatchObject({ expiresAt, version: session.version + 1 });
      expect(authorized.networkHash).toHaveLength(0);
      expect(decision.event).toMatchObject({
        kind: "session.authorized",
        target: { applicationId: shop.id, sessionId: session.id, name: shop.name },
      });
    }
  });

  it("counts against the quota of the application, or the default", async () => {
    const nonce = generateKey("non", randomUUID());
    const session = opened(nonce);
    for (const sessionQuota of [undefined, 5]) {
      const target = { session, application: { ...shop, sessionQuota } };
      const { decision } = await authorize(target, nonce);
      const limit = sessionQuota ?? defaultQuota;
      expect(decision.provided).toEqual([
        { quota: "authorized", applicationId: shop.id, epoch: shop.sessionEpoch, limit },
      ]);
    }
  });
});

describe("ending a session", () => {
  it.each([
    ["records no event for an unauthorized session that ends itself", true, false, undefined],
    ["records an authorized session that ends itself", true, true, "session.deleted"],
    ["records an unauthorized session that a manager ends", false, false, "session.deleted"],
  ])("%s", async (_, isOwn, isAuthorized, kind) => {
    const session = {
      ...opened(generateKey("non", randomUUID())),
      ...(isAuthorized && { authorizedAt: createdAt, authorizedBy: backend.id }),
    };
    const target = { session, application: shop };
    const caller: Caller = isOwn ? { application: shop, session } : manager;
    const method = sessionMethods.deleteSession;
    const { change, decision } = await decide(
      createSessionHandlers,
      { target, caller, now: createdAt },
      ({ deleteSession }) =>
        deleteSession(requestOf(method, { id: session.id }) as never, contextOf(method, caller)),
    );
    expect([decision.put, change.revokes, decision.event?.kind]).toEqual([null, true, kind]);
  });

  it("is refused for who may not administer its application", async () => {
    const session = opened(generateKey("non", randomUUID()));
    const managing = application({ type: "management", permissions: managerPermissions });
    const method = sessionMethods.deleteSession;
    const caller: Caller = { application: backend };
    const deciding = decide(
      createSessionHandlers,
      { target: { session, application: managing }, caller, now: createdAt },
      ({ deleteSession }) =>
        deleteSession(requestOf(method, { id: session.id }) as never, contextOf(method, caller)),
    );
    await expect(deciding).rejects.toBeInstanceOf(Problem);
  });
});

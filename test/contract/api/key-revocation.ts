import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "@jest/globals";
import { type Event, ListEventsResponseSchema } from "../../../gen/latchkey/v1/event_service_pb.js";
import { generateKey } from "../../../src/auth/keys.js";
import { newId } from "../../../src/lib/uuid.js";
import { keyOf } from "../../support/api/api.js";
import { expectValid } from "./assertions.js";
import { type ApiSubject, seedTenant, type Tenant, tokenRead } from "./fixtures.js";

const hour = 3_600_000;

export function describeKeyRevocation({ server, api, expectRefused }: ApiSubject): void {
  const createTenant = () => seedTenant(server(), api());
  const revoke = (key: string) => api().revokeKey(undefined, { key });
  const expectValidKey = (key: string) => expect(api().whoAmI(key)).resolves.toBeDefined();
  const expectInvalidKey = (key: string) => expectRefused(api().whoAmI(key), "unauthenticated");

  /** The events apart from refused calls, which are written later. */
  async function listEvents({ root }: Pick<Tenant, "root">): Promise<Event[]> {
    const page = await api().listEvents(root.key, { size: 100 });
    const { data } = expectValid(ListEventsResponseSchema, page);
    return data.filter(({ kind }) => kind !== "access.denied");
  }

  async function listKeyIds({ root }: Tenant, id: string): Promise<string[]> {
    return (await api().listApplicationKeys(root.key, { id })).data.map(({ id }) => id);
  }

  describe("revoking a key by possession", () => {
    it.each(["private", "management"])("revokes a %s key at once", async (type) => {
      const tenant = await createTenant();
      const { id, key } = await tenant.createApplication(type, tokenRead);
      const [keyId] = await listKeyIds(tenant, id);
      await revoke(key);
      await expectInvalidKey(key);
      expect(await listKeyIds(tenant, id)).toEqual([]);
      const [event] = await listEvents(tenant);
      expect(event).toMatchObject({
        kind: "key.revoked",
        outcome: "success",
        target: { applicationId: id, keyId },
        method: "latchkey.v1.KeyService/RevokeKey",
        address: "127.0.0.1",
      });
      expect(event?.actor).toBeUndefined();
    });

    it("leaves the other keys of the application valid, in a grace period and after it", async () => {
      const tenant = await createTenant();
      const { id, key: first } = await tenant.createApplication("private", tokenRead);
      const request = { id, gracePeriod: durationFromMs(hour) };
      const regenerate = async () =>
        keyOf(await api().regenerateApplicationKey(tenant.root.key, request));
      const second = await regenerate();
      await revoke(first);
      await expectInvalidKey(first);
      await expectValidKey(second);
      const third = await regenerate();
      await revoke(third);
      await expectInvalidKey(third);
      await expectValidKey(second);
    });

    it("deletes the session of a session key", async () => {
      const tenant = await createTenant();
      const session = await tenant.openSession(tokenRead);
      const { sessionId } = await api().whoAmI(session.key);
      await revoke(session.key);
      await expectInvalidKey(session.key);
      const [event] = await listEvents(tenant);
      expect(event).toMatchObject({
        kind: "session.deleted",
        target: { applicationId: tenant.shop.id, sessionId },
        before: tokenRead,
        method: "latchkey.v1.KeyService/RevokeKey",
      });
      expect(event?.actor).toBeUndefined();
    });

    it("leaves the sessions that the application authorized valid", async () => {
      const tenant = await createTenant();
      const session = await tenant.openSession(tokenRead);
      await revoke(tenant.backend.key);
      await expectInvalidKey(tenant.backend.key);
      await expectValidKey(session.key);
    });

    it("leaves a public key valid, and records the report once a minute", async () => {
      const tenant = await createTenant();
      const { id, key } = tenant.shop;
      const [keyId] = await listKeyIds(tenant, id);
      await revoke(key);
      await revoke(key);
      await expectValidKey(key);
      const isReport = ({ kind }: Event) => kind === "key.reported";
      const reports = (await listEvents(tenant)).filter(isReport);
      expect(reports).toMatchObject([{ target: { applicationId: id, keyId } }]);
      server().clock.advance(60_000);
      await revoke(key);
      expect((await listEvents(tenant)).filter(isReport)).toHaveLength(2);
    });

    it("revokes the key of a disabled application", async () => {
      const tenant = await createTenant();
      const { root, backend } = tenant;
      await api().disableApplication(root.key, backend);
      await revoke(backend.key);
      await api().enableApplication(root.key, backend);
      await expectInvalidKey(backend.key);
    });

    it("revokes the last key of the last manager", async () => {
      const { root } = await createTenant();
      await revoke(root.key);
      await expectInvalidKey(root.key);
    });

    it("changes nothing for unknown, replaced and expired keys, nonces and other text", async () => {
      const tenant = await createTenant();
      const { root, backend, shop } = tenant;
      const { key: replaced, id } = await tenant.createApplication("private", tokenRead);
      const gracePeriod = durationFromMs(1_000);
      const current = keyOf(await api().regenerateApplicationKey(root.key, { id, gracePeriod }));
      const { key: oldPublic, id: publicId } = await tenant.createApplication("public", tokenRead);
      await api().regenerateApplicationKey(root.key, { id: publicId, gracePeriod });
      server().clock.advance(1_000);
      const { sessionKey, nonce } = await api().createSession(shop.key);
      // The expiry of the replaced keys may be recorded at any time.
      const listChanges = async () =>
        (await listEvents(tenant)).filter(({ kind }) => kind !== "key.expired");
      const before = await listChanges();
      const unknown = [
        generateKey("prv", backend.id),
        generateKey("mgt", root.applicationId),
        generateKey("pub", newId(0)),
        generateKey("ses", newId(0)),
        replaced,
        oldPublic,
        nonce,
        `${backend.key}0`,
        "sk_live_51H8vXbKq2mNpR7t",
        "🔑",
        " ",
      ];
      for (const key of unknown) {
        await revoke(key);
      }
      await Promise.all([root.key, backend.key, current, sessionKey].map(expectValidKey));
      expect(await listChanges()).toEqual(before);
    });

    it("revokes a key once if many calls send it", async () => {
      const tenant = await createTenant();
      const { backend } = tenant;
      await Promise.all(Array.from({ length: 10 }, () => revoke(backend.key)));
      await expectInvalidKey(backend.key);
      const kinds = (await listEvents(tenant)).map(({ kind }) => kind);
      expect(kinds.filter((kind) => kind === "key.revoked")).toHaveLength(1);
    });

    it("ignores the key of the caller", async () => {
      const { root, backend } = await createTenant();
      await api().revokeKey("not a key", { key: backend.key });
      await expectInvalidKey(backend.key);
      await expectValidKey(root.key);
    });

    it.each(["", "a".repeat(1_001)])(
      "refuses a request without a key or with a long one",
      async (key) => {
        const { errors } = await expectRefused(revoke(key), "invalid_request");
        expect(Object.keys(errors)).toEqual(["key"]);
      },
    );
  });
}

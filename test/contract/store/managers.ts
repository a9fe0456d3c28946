import { randomUUID } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import { managerPermissions } from "../../../src/contract/grants.js";
import { LastManager } from "../../../src/store/port/errors.js";
import type { ApplicationRecord, NewApplication } from "../../../src/store/port/records.js";
import { useFollowers } from "../../support/api/followers.js";
import { repetitions } from "../../support/jest/suite.js";
import { audit } from "../../support/store/audit.js";
import type { OperableStore } from "../../support/store/operations.js";
import { anApplication, hour, must, rule, times, updateExpiry } from "./fixtures.js";
import { expectedChange, followWithMarker } from "./follower-fixtures.js";
import type { Subject } from "./subject.js";

const context = audit.updated;

type Change = (store: OperableStore, manager: ApplicationRecord) => Promise<unknown>;

const disable: Change = ({ applications }, { id, tenantId }) =>
  applications.update(tenantId, id, () => ({ disabled: true, modifiedBy: id }), context);
const removePermissions: Change = ({ applications }, { id, tenantId }) =>
  applications.update(
    tenantId,
    id,
    () => ({ permissions: ["application:create"], rules: [], modifiedBy: id }),
    context,
  );
const remove: Change = ({ applications }, { id, tenantId }) =>
  applications.delete(tenantId, id, context);

const changes: Readonly<Record<string, Change>> = {
  disable,
  "remove the permissions of": removePermissions,
  delete: remove,
};

/** A tenant keeps an enabled, unexpired application that can create and update applications. */
export function describeManagers(subject: () => Subject): void {
  const follow = useFollowers();

  function createManager(fields: Partial<NewApplication> = {}): Promise<ApplicationRecord> {
    return subject().store.applications.create(
      anApplication({ type: "management", permissions: managerPermissions, ...fields }),
      audit.created,
    );
  }

  async function isManaging({ id }: ApplicationRecord): Promise<boolean> {
    const found = await subject().store.applications.find(id);
    return found?.disabled === false && found.permissions.includes("application:update");
  }

  describe.each(Object.entries(changes))("an attempt to %s a manager of a tenant", (_, change) => {
    it("is refused for the last manager, and changes nothing", async () => {
      const { store } = subject();
      const last = await createManager();
      const { tenantId } = last;
      await store.applications.create(
        anApplication({ tenantId, permissions: ["application:create"] }),
        audit.created,
      );
      await store.applications.create(
        anApplication({ tenantId, permissions: ["application:update"] }),
        audit.created,
      );
      await createManager();
      await expect(change(store, last)).rejects.toThrow(LastManager);
      expect((await store.applications.find(last.id))?.version).toBe(last.version);
    });

    it("is accepted if another manager is left, including one with permissions from rules", async () => {
      const { store } = subject();
      const one = await createManager();
      const { tenantId } = one;
      await store.applications.create(
        anApplication({
          tenantId,
          permissions: ["application:update"],
          rules: [{ ...rule, permissions: ["application:create"] }],
        }),
        audit.created,
      );
      await change(store, one);
      expect(await isManaging(one)).toBe(false);
    });

    it("is refused if the others are disabled, expired or of another tenant", async () => {
      const { store, clock } = subject();
      const last = await createManager();
      const { tenantId } = last;
      await disable(store, await createManager({ tenantId }));
      await createManager({ tenantId, expiresAt: clock.now() + hour });
      clock.advance(hour);
      await expect(change(store, last)).rejects.toThrow(LastManager);
      await createManager({ tenantId, expiresAt: clock.now() + 1 });
      await change(store, last);
      expect(await isManaging(last)).toBe(false);
    });
  });

  describe("a manager of a tenant", () => {
    it("can get an expiry if it is the last one, and counts until then", async () => {
      const { store, clock } = subject();
      const last = await createManager();
      const { tenantId } = last;
      await updateExpiry(store, last, clock.now() + hour);
      const other = await createManager({ tenantId });
      await remove(store, other);
      await updateExpiry(store, last, clock.now() + 2 * hour);
      clock.advance(2 * hour - 1);
      const another = await createManager({ tenantId, expiresAt: clock.now() + hour });
      await remove(store, another);
      const remaining = await createManager({ tenantId });
      clock.advance(1);
      await expect(remove(store, remaining)).rejects.toThrow(LastManager);
    });

    it("can be changed otherwise if it is the last one", async () => {
      const { store } = subject();
      const { id, tenantId } = await createManager();
      const permissions = [...managerPermissions, "token:read"];
      const update = { name: "renamed", permissions, rules: [rule], modifiedBy: id };
      await store.applications.update(tenantId, id, () => update, context);
      await store.applications.update(tenantId, id, () => ({ keys: [], modifiedBy: id }), context);
      expect(await store.applications.find(id)).toMatchObject({ name: "renamed", permissions });
    });

    it("counts once it has the permissions and is enabled", async () => {
      const { store } = subject();
      const one = await createManager();
      const { tenantId } = one;
      const { id } = await store.applications.create(anApplication({ tenantId }), audit.created);
      const given = { permissions: managerPermissions, disabled: true, modifiedBy: id };
      await store.applications.update(tenantId, id, () => given, context);
      await expect(remove(store, one)).rejects.toThrow(LastManager);
      await store.applications.update(
        tenantId,
        id,
        () => ({ disabled: false, modifiedBy: id }),
        context,
      );
      expect(await remove(store, one)).toBe(true);
    });

    it.each(Object.entries(changes))(
      "remains if two concurrently %s each other",
      async (_, change) => {
        const { store, another } = subject();
        const other = await another();
        for (let round = 0; round < repetitions({ quick: 5, full: 10 }); round++) {
          const tenantId = randomUUID();
          const [one, two] = await Promise.all([
            createManager({ tenantId }),
            createManager({ tenantId }),
          ]);
          const outcomes = await Promise.allSettled([change(store, one), change(other, two)]);
          const refusals = outcomes.flatMap((outcome) =>
            outcome.status === "rejected" ? [outcome.reason] : [],
          );
          expect(refusals).toEqual([expect.any(LastManager)]);
          expect([await isManaging(one), await isManaging(two)].sort()).toEqual([false, true]);
        }
      },
    );

    it("remains if many are deleted and disabled concurrently", async () => {
      const { store, another } = subject();
      const other = await another();
      const tenantId = randomUUID();
      const managers = await Promise.all(times(8, () => createManager({ tenantId })));
      const outcomes = await Promise.allSettled(
        managers.map((each, index) => (index % 2 ? disable(store, each) : remove(other, each))),
      );
      expect(outcomes.filter(({ status }) => status === "rejected")).toHaveLength(1);
      const left = await Promise.all(managers.map(isManaging));
      expect(left.filter(Boolean)).toHaveLength(1);
    });

    it("is neither reported as changed nor given a new version when another is disabled", async () => {
      const { store } = subject();
      const one = await createManager();
      const two = await createManager({ tenantId: one.tenantId });
      const { writeMarker, markerChange, readUntilMarker } = await followWithMarker(
        follow,
        store,
        one.tenantId,
      );
      await disable(store, one);
      await writeMarker();
      expect(await readUntilMarker()).toEqual([expectedChange("updated", one.id), markerChange]);
      expect(must(await store.applications.find(two.id)).version).toBe(two.version);
    });
  });
}

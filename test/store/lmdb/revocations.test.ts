import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { openLmdbStore } from "../../../src/store/lmdb/store.js";
import { StoreUnavailable } from "../../../src/store/port/errors.js";
import {
  aGrant,
  aKey,
  anApplication,
  aSession,
  createWithSession,
  hour,
  rule,
  times,
} from "../../contract/store/fixtures.js";
import { canMount, fillDisk, whyNoMount, withSmallDisk } from "../../faults/support/small-disk.js";
import { createTestClock } from "../../support/clock.js";
import { itIf } from "../../support/jest/suite.js";
import { useLmdbFolder } from "../../support/lmdb/folder.js";
import { audit } from "../../support/store/audit.js";
import { type OperableStore, withOperations } from "../../support/store/operations.js";
import { until } from "../../support/until.js";

const folder = useLmdbFolder();

/** Large rules, so that few applications fill the disk. */
const rules = times(20, (index) => ({
  ...rule,
  priority: index + 1,
  description: "x".repeat(200),
}));

/** Prepares one revocation of each kind, each of another application. */
async function prepareRevocations(store: OperableStore) {
  const { applications, sessions } = store;
  const created = await Promise.all(times(4, () => createWithSession(store)));
  const [deletedApplication, disabled, rekeyed, deletedSession] = created as [
    (typeof created)[0],
    (typeof created)[0],
    (typeof created)[0],
    (typeof created)[0],
  ];
  const context = { ...audit.updated, revokes: true };
  const change = (
    { tenantId, id }: { tenantId: string; id: string },
    changed: { disabled: true } | { keys: [] },
  ) => applications.update(tenantId, id, () => ({ ...changed, modifiedBy: id }), context);
  return [
    () =>
      applications.delete(
        deletedApplication.application.tenantId,
        deletedApplication.application.id,
        audit.deleted,
      ),
    () => change(disabled.application, { disabled: true }),
    () => change(rekeyed.application, { keys: [] }),
    () =>
      sessions.delete(
        deletedSession.created.tenantId,
        deletedSession.created.id,
        audit.sessionDeleted,
      ),
  ];
}

function createUntilRefused(store: OperableStore) {
  const tenantId = randomUUID();
  return async () => {
    for (;;) {
      try {
        await store.applications.create(
          anApplication({ tenantId, rules, key: aKey() }),
          audit.created,
        );
      } catch (error) {
        return error;
      }
    }
  };
}

/** Opens a store on a small disk, and closes it afterwards. */
function withStoreOnSmallDisk(
  use: (
    store: OperableStore,
    disk: string,
    clock: ReturnType<typeof createTestClock>,
  ) => Promise<void>,
) {
  return withSmallDisk(28, async (disk) => {
    const clock = createTestClock();
    const store = withOperations(
      await openLmdbStore({
        path: join(disk, "data"),
        clock: clock.now,
        sweepInterval: 20,
        writeTimeout: 60_000,
      }),
    );
    try {
      await use(store, disk, clock);
    } finally {
      await store.close();
    }
  });
}

describe("revocations on the embedded store", () => {
  it("are committed before waiting creates, and not with them", async () => {
    const store = await folder.open();
    const revocations = await prepareRevocations(store);
    const order: string[] = [];
    const create = () =>
      store.applications.create(anApplication(), audit.created).then(() => order.push("create"));
    const creates = times(50, create);
    await Promise.all([
      ...creates,
      ...revocations.map((revoke) => revoke().then(() => order.push("revocation"))),
    ]);

    expect(order.slice(0, revocations.length)).toEqual(revocations.map(() => "revocation"));
  });

  it("do not starve creates", async () => {
    const store = await folder.open();
    const { application } = await createWithSession(store);
    let isDone = false;
    const revoking = Promise.all(
      times(2, async () => {
        while (!isDone) {
          await store.sessions.delete(application.tenantId, randomUUID(), audit.sessionDeleted);
        }
      }),
    );
    await store.applications.create(anApplication(), audit.created);
    isDone = true;
    await revoking;
  });

  const title = "succeed on a full disk together with creates that are refused";
  itIf(canMount(), title, whyNoMount, () =>
    withStoreOnSmallDisk(async (store, disk) => {
      const revocations = await prepareRevocations(store);
      const fill = createUntilRefused(store);
      expect(await fill()).toBeInstanceOf(StoreUnavailable);
      await fillDisk(disk);
      const refused = Promise.all(times(50, fill));
      expect(await Promise.all(revocations.map((revoke) => revoke()))).toHaveLength(4);
      for (const error of await refused) {
        expect(String(error)).toMatch(/reserved for revocations.*Free space on its disk/);
      }
      await store.ping();
    }),
  );

  const recovers = "leave the store writable once sweeps have freed space in its file";
  itIf(canMount(), recovers, whyNoMount, () =>
    withStoreOnSmallDisk(async (store, disk, clock) => {
      const application = await store.applications.create(anApplication(), audit.created);
      const isRefused = async () => {
        const session = aSession(application, { ttl: hour });
        try {
          await store.sessions.create(session);
          await store.sessions.authorize(aGrant(session, { rules }), audit.authorized);
          return false;
        } catch {
          return true;
        }
      };
      while (!(await isRefused())) {}
      await fillDisk(disk);
      clock.advance(hour);

      await until(async () => !(await isRefused()));
    }),
  );
});

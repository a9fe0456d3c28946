import { describe, expect, it } from "@jest/globals";
import { SessionQuotaReached } from "../../../src/store/port/errors.js";
import type { ApplicationRecord } from "../../../src/store/port/records.js";
import { aGrant, anApplication, aSession, hour, must } from "../../contract/store/fixtures.js";
import { createTestClock } from "../../support/clock.js";
import { useLmdbFolder } from "../../support/lmdb/folder.js";
import { audit } from "../../support/store/audit.js";
import type { OperableStore } from "../../support/store/operations.js";
import { until } from "../../support/until.js";

const folder = useLmdbFolder();
const quota = 3;

/** Opens sessions until the quota is reached, and returns them. */
async function fillQuota(store: OperableStore, application: ApplicationRecord, ttl = hour) {
  const opened = [];
  for (;;) {
    const session = aSession(application, { quota: { total: quota }, ttl });
    try {
      await store.sessions.create(session);
      opened.push(session);
    } catch (error) {
      expect(error).toBeInstanceOf(SessionQuotaReached);
      return opened;
    }
  }
}

describe("the count of open sessions in LMDB", () => {
  it("is correct after expired, revoked and orphaned sessions were swept", async () => {
    const clock = createTestClock(Date.UTC(2100, 0));
    const store = await folder.open({ clock: clock.now, sweepInterval: 5 });
    const [one, other] = [
      await store.applications.create(anApplication(), audit.created),
      await store.applications.create(anApplication(), audit.created),
    ];
    const opened = await fillQuota(store, one, 1_000);
    await store.sessions.authorize(
      aGrant(must(opened[0]), { expiresAt: clock.now() + 2 * hour }),
      audit.authorized,
    );
    await fillQuota(store, other);
    clock.advance(1_000);
    await until(async () => (await store.sessions.drainExpiredCount()) > 0);
    expect(await fillQuota(store, one)).toHaveLength(quota);

    await store.applications.update(
      one.tenantId,
      one.id,
      () => ({
        sessionEpoch: 1,
        modifiedBy: one.id,
      }),
      audit.updated,
    );
    expect(await fillQuota(store, one)).toHaveLength(quota);
    await store.applications.delete(other.tenantId, other.id, audit.deleted);
    expect(await fillQuota(store, one)).toHaveLength(0);
  });
});

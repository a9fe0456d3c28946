import { afterAll, beforeAll, describe, expect, it, jest } from "@jest/globals";
import { newId } from "../../src/lib/uuid.js";
import { openMongoStore } from "../../src/store/mongo/store.js";
import { StoreUnavailable } from "../../src/store/port/errors.js";
import type { Store } from "../../src/store/port/store.js";
import { anIdempotencyId } from "../contract/store/audited-changes.js";
import { times } from "../contract/store/fixtures.js";
import { keyOf } from "../support/api/api.js";
import type { Member } from "../support/mongo/replica-set-member.js";
import { until } from "../support/until.js";
import { type CallRecorder, retryWhileUnavailable, unavailable } from "./support/call-recorder.js";
import { usePartitionedCluster } from "./support/partitioned-cluster.js";
import {
  type RevocationResults,
  revokeDuringPartition,
  sessionRevocations,
} from "./support/session-revocations.js";

jest.setTimeout(300_000);

/** A store with the connections of the stale instance. */
let staleStore: Store;
afterAll(() => staleStore?.close());

const cluster = usePartitionedCluster();

beforeAll(async () => {
  const uri = cluster.set.uriFor(cluster.stale.instance);
  staleStore = await openMongoStore({ uri, database: "latchkey" });
});

async function createApplication() {
  const { api } = cluster.current;
  const request = { name: "shop", type: "private", permissions: ["application:read"] };
  const application = await retryWhileUnavailable(() =>
    api.createApplication(cluster.keys.root, request),
  );
  return { id: application.id, key: keyOf(application) };
}

const succeeds = (call: Promise<unknown>) =>
  call.then(
    () => true,
    () => false,
  );

type Send = Parameters<CallRecorder["call"]>[2];

/** Calls the stale instance while its member still regards itself as primary, and expects only unavailable errors. */
async function expectUnavailable(former: Member, send: Send): Promise<void> {
  const { recorder, stale } = cluster;
  expect(await former.command({ hello: 1 })).toMatchObject({ isWritablePrimary: true });
  const outcomes = await Promise.all(times(5, () => recorder.call(stale, "", send)));
  expect(outcomes.filter(({ result }) => !unavailable.includes(result))).toEqual([]);
}

describe("an instance that is connected only to a former primary", () => {
  it("refuses a key that was replaced on another instance", async () => {
    const { id, key } = await createApplication();
    const former = await cluster.partition();
    await cluster.untilDone(cluster.current, (api) =>
      api.regenerateApplicationKey(cluster.keys.root, { id }),
    );
    await expectUnavailable(former, (api) => api.whoAmI(key));
  });

  it("refuses a key that was deleted on another instance", async () => {
    const { id, key } = await createApplication();
    const former = await cluster.partition();
    await cluster.untilDone(cluster.current, (api) =>
      api.deleteApplication(cluster.keys.root, { id }),
    );
    const check = { key, permission: "application:read" };
    await expectUnavailable(former, (api) => api.checkAccess(cluster.keys.root, check));
  });

  it("returns no state from before a change that another instance acknowledged", async () => {
    const { id } = await createApplication();
    const former = await cluster.partition();
    const changed = { id, name: "changed", permissions: ["application:read"] };
    await cluster.untilDone(cluster.current, (api) =>
      api.updateApplication(cluster.keys.root, changed),
    );
    await Promise.all([
      expectUnavailable(former, (api) => api.getApplication(cluster.keys.root, { id })),
      expectUnavailable(former, (api) => api.listApplications(cluster.keys.root)),
    ]);
  });

  it("is not ready, and refuses to read events, expired records and stored responses", async () => {
    const id = newId(Date.now());
    await until(() => succeeds(staleStore.ping()));
    const former = await cluster.partition();
    expect(await former.command({ hello: 1 })).toMatchObject({ isWritablePrimary: true });
    const { url } = cluster.instances[0];
    const ready = fetch(`${url}/readyz`);
    const reads = await Promise.allSettled([
      staleStore.events.list({ tenantId: id, size: 1 }),
      staleStore.applications.findExpired(id),
      staleStore.sessions.findExpired(id),
      staleStore.responses.find(anIdempotencyId()),
    ]);
    const refused = { status: "rejected", reason: expect.any(StoreUnavailable) };
    expect(reads).toEqual(times(4, () => refused));
    expect((await ready).status).toBe(503);
  });
});

describe("an instance connected only to a former primary, for sessions revoked on another instance", () => {
  const methods = Object.keys(sessionRevocations);
  let results: RevocationResults;

  beforeAll(async () => {
    results = await revokeDuringPartition(cluster);
  });

  it("refuses every session key without details", () => {
    expect(results.isStillPrimary).toBe(true);
    expect(results.staleCalls).toHaveLength(2 * methods.length);
    expect(results.staleCalls.filter((result) => !unavailable.includes(result))).toEqual([]);
  });

  it("allows nothing on an access check stream that was open before, and the other instance denies all", () => {
    const { before, stale, current } = results.checks;
    expect(before).toEqual(times(2, () => methods.map(() => true)));
    expect(stale).toEqual([expect.stringMatching(unavailable.join("|"))]);
    expect(current).toEqual(methods.map(() => false));
  });

  it("does not report completeness to watchers before it has delivered all changes", () => {
    const { watches, unexpectedErrors } = results;
    expect(watches).toEqual({
      deliveredByCurrent: methods,
      deliveredByStale: methods,
      missing: [],
    });
    expect(unexpectedErrors).toEqual([]);
  });
});

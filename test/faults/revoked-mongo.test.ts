import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { newId } from "../../src/ids.js";
import { openMongoStore } from "../../src/store/mongo.js";
import { type Store, StoreUnavailable } from "../../src/store/store.js";
import { times } from "../store-contract/fixtures.js";
import { anAnswerId } from "../store-contract/trailed-changes.js";
import { keyOf } from "../support/api.js";
import type { Member } from "../support/replica-set-member.js";
import { until } from "../support/until.js";
import { type Cluster, startCluster } from "./support/cluster.js";
import { createTally, type Door, unavailable } from "./support/tally.js";

let cluster: Cluster;
let misled: Door;
let informed: Door;
/** Reaches what the misled instance does. */
let misledStore: Store;

const tally = createTally();

/** How long a primary that hears nobody takes itself for one, in milliseconds: long enough to be asked. */
const electionTimeout = 10_000;

beforeAll(async () => {
  cluster = await startCluster(electionTimeout);
  [misled, informed] = cluster.restDoors;
  const uri = cluster.set.uriFor(misled.instance);
  misledStore = await openMongoStore({ uri, database: "latchkey" });
}, 60_000);

afterEach(() => cluster?.set.heal(), 30_000);

afterAll(async () => {
  await misledStore?.close();
  await cluster?.stop();
});

async function createApplication() {
  const { api } = informed;
  const request = { name: "shop", type: "private", permissions: ["application:read"] };
  const made = await api.createApplication(cluster.keys.root, request);
  return { id: made.id, key: keyOf(made) };
}

/** Leaves one instance alone with a primary of the past, which does not know yet that it is one. */
async function mislead(): Promise<Member> {
  const { set, keys } = cluster;
  const past = await set.primary();
  const [next, third] = set.members.filter((member) => member !== past) as [Member, Member];
  await Promise.all(
    [misled, informed].map((door) => untilDone(door, (api) => api.whoAmI(keys.root))),
  );
  // The others notice at once, and it does not: it hears nobody for a while before it doubts itself.
  set.isolate(past, "refused");
  set.cutOff(misled.instance, next);
  set.cutOff(misled.instance, third);
  set.cutOff(informed.instance, past);
  await set.stepUp(next);
  return past;
}

async function untilDone(door: Door, make: Parameters<typeof tally.call>[2]): Promise<void> {
  await until(async () => (await tally.call(door, "", make)).end === "done", 10_000);
}

const isDone = (work: Promise<unknown>) =>
  work.then(
    () => true,
    () => false,
  );

/** Asks the misled a few times while the primary that it reaches takes itself for one, and expects no other word than that it cannot tell. */
async function expectNoWord(past: Member, make: Parameters<typeof tally.call>[2]): Promise<void> {
  expect(await past.command({ hello: 1 })).toMatchObject({ isWritablePrimary: true });
  const asked = await Promise.all(times(5, () => tally.call(misled, "", make)));
  expect(asked.filter(({ end }) => !unavailable.includes(end))).toEqual([]);
}

describe("an instance that reaches only a primary of the past", () => {
  it("does not take a key that was replaced through another", async () => {
    const { id, key } = await createApplication();
    const past = await mislead();
    await untilDone(informed, (api) => api.regenerateApplicationKey(cluster.keys.root, { id }));
    await expectNoWord(past, (api) => api.whoAmI(key));
  });

  it("does not allow anything to a key that was deleted through another", async () => {
    const { id, key } = await createApplication();
    const past = await mislead();
    await untilDone(informed, (api) => api.deleteApplication(cluster.keys.root, { id }));
    const check = { key, permission: "application:read" };
    await expectNoWord(past, (api) => api.checkAccess(cluster.keys.root, check));
  });

  it("shows nothing as it was before a change that another acknowledged", async () => {
    const { id } = await createApplication();
    const past = await mislead();
    const changed = { id, name: "changed", permissions: ["application:read"] };
    await untilDone(informed, (api) => api.updateApplication(cluster.keys.root, changed));
    await Promise.all([
      expectNoWord(past, (api) => api.getApplication(cluster.keys.root, { id })),
      expectNoWord(past, (api) => api.listApplications(cluster.keys.root)),
    ]);
  });

  it("is not ready, and reads nothing of what follows a look-up either", async () => {
    const id = newId(Date.now());
    await until(() => isDone(misledStore.ping()), 10_000);
    const past = await mislead();
    expect(await past.command({ hello: 1 })).toMatchObject({ isWritablePrimary: true });
    const { url } = cluster.instances[0];
    const ready = fetch(`${url}/readyz`);
    const reads = await Promise.allSettled([
      misledStore.events.list({ tenantId: id, size: 1 }),
      misledStore.applications.findExpired(id),
      misledStore.sessions.findExpired(id),
      misledStore.answers.find(anAnswerId()),
    ]);
    const refused = { status: "rejected", reason: expect.any(StoreUnavailable) };
    expect(reads).toEqual(times(4, () => refused));
    expect((await ready).status).toBe(503);
  });
});

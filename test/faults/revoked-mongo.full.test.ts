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
import { sessionEnds } from "./support/ending-sessions.js";
import { insist } from "./support/insist.js";
import { useMisledCluster } from "./support/misled-cluster.js";
import { type SessionStory, tellSessionStory } from "./support/session-story.js";
import { type Tally, unavailable } from "./support/tally.js";

jest.setTimeout(300_000);

/** Reaches what the misled instance does. */
let misledStore: Store;
afterAll(() => misledStore?.close());

const cluster = useMisledCluster();

beforeAll(async () => {
  const uri = cluster.set.uriFor(cluster.misled.instance);
  misledStore = await openMongoStore({ uri, database: "latchkey" });
});

async function createApplication() {
  const { api } = cluster.informed;
  const request = { name: "shop", type: "private", permissions: ["application:read"] };
  const made = await insist(() => api.createApplication(cluster.keys.root, request));
  return { id: made.id, key: keyOf(made) };
}

const isDone = (work: Promise<unknown>) =>
  work.then(
    () => true,
    () => false,
  );

type Make = Parameters<Tally["call"]>[2];

/** Asks the misled a few times while the primary that it reaches takes itself for one, and expects no other word than that it cannot tell. */
async function expectNoWord(past: Member, make: Make): Promise<void> {
  const { tally, misled } = cluster;
  expect(await past.command({ hello: 1 })).toMatchObject({ isWritablePrimary: true });
  const asked = await Promise.all(times(5, () => tally.call(misled, "", make)));
  expect(asked.filter(({ end }) => !unavailable.includes(end))).toEqual([]);
}

describe("an instance that is connected only to a former primary", () => {
  it("refuses a key that was replaced on another instance", async () => {
    const { id, key } = await createApplication();
    const past = await cluster.mislead();
    await cluster.untilDone(cluster.informed, (api) =>
      api.regenerateApplicationKey(cluster.keys.root, { id }),
    );
    await expectNoWord(past, (api) => api.whoAmI(key));
  });

  it("refuses a key that was deleted on another instance", async () => {
    const { id, key } = await createApplication();
    const past = await cluster.mislead();
    await cluster.untilDone(cluster.informed, (api) =>
      api.deleteApplication(cluster.keys.root, { id }),
    );
    const check = { key, permission: "application:read" };
    await expectNoWord(past, (api) => api.checkAccess(cluster.keys.root, check));
  });

  it("returns no state from before a change that another instance acknowledged", async () => {
    const { id } = await createApplication();
    const past = await cluster.mislead();
    const changed = { id, name: "changed", permissions: ["application:read"] };
    await cluster.untilDone(cluster.informed, (api) =>
      api.updateApplication(cluster.keys.root, changed),
    );
    await Promise.all([
      expectNoWord(past, (api) => api.getApplication(cluster.keys.root, { id })),
      expectNoWord(past, (api) => api.listApplications(cluster.keys.root)),
    ]);
  });

  it("is not ready, and fails the reads after a lookup too", async () => {
    const id = newId(Date.now());
    await until(() => isDone(misledStore.ping()));
    const past = await cluster.mislead();
    expect(await past.command({ hello: 1 })).toMatchObject({ isWritablePrimary: true });
    const { url } = cluster.instances[0];
    const ready = fetch(`${url}/readyz`);
    const reads = await Promise.allSettled([
      misledStore.events.list({ tenantId: id, size: 1 }),
      misledStore.applications.findExpired(id),
      misledStore.sessions.findExpired(id),
      misledStore.responses.find(anIdempotencyId()),
    ]);
    const refused = { status: "rejected", reason: expect.any(StoreUnavailable) };
    expect(reads).toEqual(times(4, () => refused));
    expect((await ready).status).toBe(503);
  });
});

describe("an instance connected only to a former primary, for sessions revoked on another instance", () => {
  const ways = Object.keys(sessionEnds);
  let story: SessionStory;

  beforeAll(async () => {
    story = await tellSessionStory(cluster);
  });

  it("refuses every session key without details", () => {
    expect(story.isDeluded).toBe(true);
    expect(story.misledCalls).toHaveLength(2 * ways.length);
    expect(story.misledCalls.filter((end) => !unavailable.includes(end))).toEqual([]);
  });

  it("allows nothing on an access check stream that was open before, and the other instance denies all", () => {
    const { before, misled, informed } = story.checks;
    expect(before).toEqual(times(2, () => ways.map(() => true)));
    expect(misled).toEqual([expect.stringMatching(unavailable.join("|"))]);
    expect(informed).toEqual(ways.map(() => false));
  });

  it("does not report completeness to watchers before it has delivered all changes", () => {
    const { watches, strangeEnds } = story;
    expect(watches).toEqual({ toldByInformed: ways, toldByMisledAtLast: ways, misledAbout: [] });
    expect(strangeEnds).toEqual([]);
  });
});

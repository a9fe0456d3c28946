import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { CreateSessionResponse } from "../../gen/latchkey/v1/session_service_pb.js";
import { times } from "../store-contract/fixtures.js";
import type { ReplicaSet } from "../support/replica-set.js";
import type { Member } from "../support/replica-set-member.js";
import { until } from "../support/until.js";
import { type Cluster, startCluster } from "./support/cluster.js";
import { unexpected } from "./support/findings.js";
import { createTally, type Door, type Tally, unavailable } from "./support/tally.js";

const sessions = 100;
const authorizesEach = 50;

/** How many sessions are authorized at once, all by as many calls. */
const atOnce = 10;

interface Opened {
  readonly id: string;
  readonly sessionKey: string;
  readonly nonce: string;
  /** How the calls ended that showed its nonce. */
  readonly ends: string[];
}

const tally: Tally = createTally();
let cluster: Cluster;
let opened: Opened[];

const doorAt = (at: number) => cluster.doors[at % cluster.doors.length] as Door;

async function open(at: number): Promise<Opened> {
  let session: CreateSessionResponse | undefined;
  await until(async () => {
    const { opener } = cluster.keys;
    const { value } = await tally.call(doorAt(at), "open", (api) => api.createSession(opener));
    session = value;
    return session !== undefined;
  }, 20_000);
  const { id, sessionKey, nonce } = session as CreateSessionResponse;
  return { id, sessionKey, nonce, ends: [] };
}

async function authorize({ nonce, ends }: Opened, at: number): Promise<void> {
  const grant = { nonce, permissions: ["application:read"] };
  const { granter } = cluster.keys;
  const { end } = await tally.call(doorAt(at), "spend", (api) =>
    api.authorizeSession(granter, grant),
  );
  ends.push(end);
}

/**
 * Changes the primary twice: by its death, and by another that steps up. After
 * its death none is elected, since one of the others is frozen, before somebody
 * was told that the store is away.
 */
async function changePrimaries(): Promise<void> {
  const { set } = cluster;
  await delay(300);
  const { primary, next } = await membersOf(set);
  next.freeze();
  await primary.kill();
  await until(async () => tally.outcomes.some(({ end }) => unavailable.includes(end)), 20_000);
  await set.heal();
  await set.stepUp((await membersOf(set)).next);
}

async function membersOf(set: ReplicaSet) {
  const primary = await set.primary();
  const [next] = set.members.filter((member) => member !== primary);
  return { primary, next: next as Member };
}

async function spendAll(): Promise<void> {
  for (let start = 0; start < sessions; start += atOnce) {
    const wave = opened.slice(start, start + atOnce);
    await Promise.all(wave.flatMap((one) => times(authorizesEach, (at) => authorize(one, at))));
  }
}

/** What the session itself, and its key, say of whether it is authorized; asked until both are heard. */
async function findOut({ id, sessionKey }: Opened, at: number): Promise<boolean> {
  const found: boolean[] = [];
  await until(async () => {
    const door = doorAt(at);
    const read = await tally.call(door, "", (api) => api.getSession(cluster.keys.root, { id }));
    const asked = await tally.call(door, "", (api) => api.whoAmI(sessionKey));
    if (read.value && asked.value) {
      found.push(read.value.state === "authorized", asked.value.authorized);
    }
    return found.length > 0;
  }, 10_000);
  expect(found[0]).toBe(found[1]);
  return found[0] === true;
}

const count = (ends: readonly string[], end: string) => ends.filter((one) => one === end).length;

beforeAll(async () => {
  cluster = await startCluster();
  opened = await Promise.all(times(sessions, open));
  await Promise.all([spendAll(), changePrimaries()]);
  await cluster.set.heal();
}, 150_000);

afterAll(() => cluster?.stop());

describe("a nonce that many show at once, through every instance, while the primary changes", () => {
  it("is spent by one call at most, and all others are told so or to try again", () => {
    expect(opened.filter(({ ends }) => count(ends, "done") > 1)).toEqual([]);
    const others = opened.flatMap(({ ends }) => ends).filter((end) => end !== "done");
    const expected = ["nonce_used", ...unavailable];
    expect(others.filter((end) => !expected.includes(end))).toEqual([]);
    const answers = tally.outcomes.filter(({ end }) => end !== "nonce_used");
    expect(unexpected(answers, [])).toEqual([]);
  });

  it("leaves a session that tells whether it was authorized, also those who were not answered", async () => {
    await Promise.all(
      opened.map(async (one, at) => {
        const { ends } = one;
        const isSpent = count(ends, "done") + count(ends, "nonce_used") > 0;
        const isAuthorized = await findOut(one, at);
        // Where nobody was told that it is spent, it may be all the same.
        expect(isAuthorized || !isSpent).toBe(true);
        await authorize(one, at);
        expect(ends.at(-1)).toBe(isAuthorized ? "nonce_used" : "done");
      }),
    );
    expect(opened.some(({ ends }) => ends.some((end) => unavailable.includes(end)))).toBe(true);
  }, 60_000);
});

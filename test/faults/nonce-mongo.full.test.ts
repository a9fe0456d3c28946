import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { CreateSessionResponse } from "../../gen/latchkey/v1/session_service_pb.js";
import { times } from "../contract/store/fixtures.js";
import type { ReplicaSet } from "../support/mongo/replica-set.js";
import type { Member } from "../support/mongo/replica-set-member.js";
import { until } from "../support/until.js";
import { type Cluster, startCluster } from "./support/cluster.js";
import { unexpected } from "./support/findings.js";
import { createTally, type Door, type Tally, unavailable } from "./support/tally.js";

const sessions = 60;
const authorizesEach = 25;

/** How many sessions are authorized at once, each by all its calls. */
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
  });
  const { id, sessionKey, nonce } = session as CreateSessionResponse;
  return { id, sessionKey, nonce, ends: [] };
}

async function authorize({ nonce, ends }: Opened, at: number): Promise<string> {
  const grant = { nonce, permissions: ["application:read"] };
  const { granter } = cluster.keys;
  const { end } = await tally.call(doorAt(at), "spend", (api) =>
    api.authorizeSession(granter, grant),
  );
  ends.push(end);
  return end;
}

async function membersOf(set: ReplicaSet) {
  const primary = await set.primary();
  const [next] = set.members.filter((member) => member !== primary);
  return { primary, next: next as Member };
}

/** Lets the next sessions be authorized, a few at once. */
function createSpender() {
  let next = 0;
  return async function spend(count: number): Promise<void> {
    for (const end = next + count; next < end; ) {
      const wave = opened.slice(next, Math.min(next + atOnce, end));
      next += wave.length;
      await Promise.all(wave.flatMap((one) => times(authorizesEach, (at) => authorize(one, at))));
    }
  };
}

/**
 * Spends all nonces while the primary changes twice: by its death, and by
 * another that steps up. After its death no member can be elected until it is
 * healed, since one of the others is frozen: some calls cannot be served.
 */
async function spendWhilePrimaryChanges(): Promise<void> {
  const { set } = cluster;
  const spend = createSpender();
  await spend(10);
  const { primary, next } = await membersOf(set);
  next.freeze();
  await Promise.all([spend(10), untilMoreAnswers(20).then(() => primary.kill())]);
  await spend(10);
  await Promise.all([spend(10), set.heal()]);
  const { next: successor } = await membersOf(set);
  await Promise.all([spend(20), untilMoreAnswers(20).then(() => set.stepUp(successor))]);
}

async function untilMoreAnswers(count: number): Promise<void> {
  const enough = tally.outcomes.length + count;
  await until(async () => tally.outcomes.length >= enough);
}

/** Whether a session is authorized, by itself and by its key; asks until both answer. */
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
  });
  expect(found[0]).toBe(found[1]);
  return found[0] === true;
}

const count = (ends: readonly string[], end: string) => ends.filter((one) => one === end).length;

beforeAll(async () => {
  cluster = await startCluster();
  opened = await Promise.all(times(sessions, open));
  await spendWhilePrimaryChanges();
}, 600_000);

afterAll(() => cluster?.stop());

describe("a nonce used concurrently on every instance while the primary changes", () => {
  it("is accepted at most once, and all other calls get an error", () => {
    expect(opened.some(({ ends }) => ends.some((end) => unavailable.includes(end)))).toBe(true);
    expect(opened.filter(({ ends }) => count(ends, "done") > 1)).toEqual([]);
    const others = opened.flatMap(({ ends }) => ends).filter((end) => end !== "done");
    const expected = ["nonce_used", ...unavailable];
    expect(others.filter((end) => !expected.includes(end))).toEqual([]);
    const answers = tally.outcomes.filter(({ end }) => end !== "nonce_used");
    expect(unexpected(answers, [])).toEqual([]);
  });

  it("leaves a session whose state shows whether it was authorized", async () => {
    await Promise.all(
      opened.map(async (one, at) => {
        const { ends } = one;
        const isSpent = count(ends, "done") + count(ends, "nonce_used") > 0;
        let isAuthorized = await findOut(one, at);
        // A call without an answer may have spent it all the same.
        expect(isAuthorized || !isSpent).toBe(true);
        let end = await authorize(one, at);
        while (unavailable.includes(end)) {
          isAuthorized = await findOut(one, at);
          end = await authorize(one, at);
        }
        expect(end).toBe(isAuthorized ? "nonce_used" : "done");
      }),
    );
  }, 300_000);
});

import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { CreateSessionResponse } from "../../gen/latchkey/v1/session_service_pb.js";
import { times } from "../contract/store/fixtures.js";
import type { ReplicaSet } from "../support/mongo/replica-set.js";
import type { Member } from "../support/mongo/replica-set-member.js";
import { until } from "../support/until.js";
import {
  type CallRecorder,
  createCallRecorder,
  type Endpoint,
  unavailable,
} from "./support/call-recorder.js";
import { type Cluster, startCluster } from "./support/cluster.js";
import { findUnexpected } from "./support/fault-report.js";

const sessions = 60;
const callsPerSession = 25;

/** The number of sessions that are authorized concurrently, each by all its calls. */
const concurrency = 10;

interface OpenSession {
  readonly id: string;
  readonly sessionKey: string;
  readonly nonce: string;
  /** The results of the calls with its nonce. */
  readonly results: string[];
}

const recorder: CallRecorder = createCallRecorder();
let cluster: Cluster;
let opened: OpenSession[];

const endpointAt = (at: number) => cluster.endpoints[at % cluster.endpoints.length] as Endpoint;

async function open(at: number): Promise<OpenSession> {
  let session: CreateSessionResponse | undefined;
  await until(async () => {
    const { opener } = cluster.keys;
    const { value } = await recorder.call(endpointAt(at), "open", (api) =>
      api.createSession(opener),
    );
    session = value;
    return session !== undefined;
  });
  const { id, sessionKey, nonce } = session as CreateSessionResponse;
  return { id, sessionKey, nonce, results: [] };
}

async function authorize({ nonce, results }: OpenSession, at: number): Promise<string> {
  const grant = { nonce, permissions: ["application:read"] };
  const { granter } = cluster.keys;
  const { result } = await recorder.call(endpointAt(at), "use nonce", (api) =>
    api.authorizeSession(granter, grant),
  );
  results.push(result);
  return result;
}

async function getMembers(set: ReplicaSet) {
  const primary = await set.primary();
  const [next] = set.members.filter((member) => member !== primary);
  return { primary, next: next as Member };
}

/** Returns a function that authorizes the next sessions. */
function createAuthorizer() {
  let next = 0;
  return async function authorizeNext(count: number): Promise<void> {
    for (const end = next + count; next < end; ) {
      const batch = opened.slice(next, Math.min(next + concurrency, end));
      next += batch.length;
      await Promise.all(
        batch.flatMap((session) => times(callsPerSession, (at) => authorize(session, at))),
      );
    }
  };
}

/**
 * Uses all nonces while the primary changes twice: it is killed, and later
 * another member steps up. After the kill no member can be elected until the set
 * is healed, since another member is frozen, so some calls fail.
 */
async function authorizeDuringFailovers(): Promise<void> {
  const { set } = cluster;
  const authorizeNext = createAuthorizer();
  await authorizeNext(10);
  const { primary, next } = await getMembers(set);
  next.freeze();
  await Promise.all([authorizeNext(10), untilMoreOutcomes(20).then(() => primary.kill())]);
  await authorizeNext(10);
  await Promise.all([authorizeNext(10), set.heal()]);
  const { next: successor } = await getMembers(set);
  await Promise.all([authorizeNext(20), untilMoreOutcomes(20).then(() => set.stepUp(successor))]);
}

async function untilMoreOutcomes(count: number): Promise<void> {
  const enough = recorder.outcomes.length + count;
  await until(async () => recorder.outcomes.length >= enough);
}

/** Whether a session is authorized, according to its resource and its key. Retries until both calls succeed. */
async function isAuthorized({ id, sessionKey }: OpenSession, at: number): Promise<boolean> {
  const found: boolean[] = [];
  await until(async () => {
    const endpoint = endpointAt(at);
    const read = await recorder.call(endpoint, "", (api) =>
      api.getSession(cluster.keys.root, { id }),
    );
    const self = await recorder.call(endpoint, "", (api) => api.whoAmI(sessionKey));
    if (read.value && self.value) {
      found.push(read.value.state === "authorized", self.value.authorized);
    }
    return found.length > 0;
  });
  expect(found[0]).toBe(found[1]);
  return found[0] === true;
}

const count = (results: readonly string[], result: string) =>
  results.filter((other) => other === result).length;

beforeAll(async () => {
  cluster = await startCluster();
  opened = await Promise.all(times(sessions, open));
  await authorizeDuringFailovers();
}, 600_000);

afterAll(() => cluster?.stop());

describe("a nonce used concurrently on every instance while the primary changes", () => {
  it("is accepted at most once, and all other calls get an error", () => {
    expect(
      opened.some(({ results }) => results.some((result) => unavailable.includes(result))),
    ).toBe(true);
    expect(opened.filter(({ results }) => count(results, "done") > 1)).toEqual([]);
    const others = opened.flatMap(({ results }) => results).filter((result) => result !== "done");
    const expected = ["nonce_used", ...unavailable];
    expect(others.filter((result) => !expected.includes(result))).toEqual([]);
    expect(findUnexpected(recorder.outcomes, [], ["nonce_used"])).toEqual([]);
  });

  it("leaves a session whose state shows whether it was authorized", async () => {
    await Promise.all(
      opened.map(async (session, at) => {
        const { results } = session;
        const isUsed = count(results, "done") + count(results, "nonce_used") > 0;
        let wasAuthorized = await isAuthorized(session, at);
        // A call without a response may have used the nonce, too.
        expect(wasAuthorized || !isUsed).toBe(true);
        let result = await authorize(session, at);
        while (unavailable.includes(result)) {
          wasAuthorized = await isAuthorized(session, at);
          result = await authorize(session, at);
        }
        expect(result).toBe(wasAuthorized ? "nonce_used" : "done");
      }),
    );
  });
});

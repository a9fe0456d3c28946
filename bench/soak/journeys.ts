import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";
import type { CheckAccessResponse } from "../../gen/latchkey/v1/access_service_pb.js";
import { type Keys, type Made, privateApplication } from "../seed.js";
import { createGrpcClient, createRest } from "./clients.js";
import type { Record } from "./recorder.js";

/** Something that a caller does, in one request or a few. What it makes it removes again. */
type Journey = () => Promise<unknown>;

export interface Journeys {
  /** Begins one of the journeys, each as often as it is in proportion. Answers whether it went well. */
  next(): Promise<boolean>;
  close(): void;
}

const application = { name: "Soaked", type: "private", permissions: ["token:read"] };
const asJson = (value: object) => JSON.stringify(value);

/** For how long a watch is held open, in milliseconds. */
const watchTime = 3_000;

/** The mix of a day: mostly reads and checks, some changes, watches that come and go, some nonsense. Each looks at what it is told. */
export function createJourneys(url: string, keys: Keys, record: Record): Journeys {
  const rest = createRest(url);
  const { call } = rest;
  const manager = createGrpcClient(url, keys.management);
  const checker = createGrpcClient(url, keys.checking);
  const { time } = record;
  let turn = 0;
  const anyone = () => keys.private[turn++ % keys.private.length] as Made;
  const get = (key: string, path: string, expect = [200]) => call(key, "GET", path, { expect });
  const post = (key: string, path: string, body: object, expect: number[]) =>
    call(key, "POST", path, { expect, body: asJson(body) });
  const remove = (id: string) =>
    time("delete", () => call(keys.management, "DELETE", `/applications/${id}`, { expect: [204] }));
  const checkOf = (key: string) => ({ key, permission: "token:read" });

  async function readByKey(): Promise<void> {
    const { id, key } = anyone();
    const found = await time("read by key", () => get(key, "/applications/key"));
    assert.equal(found.id, id, "a key was taken for another's");
  }

  async function readById(): Promise<void> {
    const { id } = anyone();
    const found = await time("read by id (gRPC)", () =>
      manager.applications.getApplication({ id }),
    );
    assert.equal(found.id, id, "another application was read than was asked for");
  }

  async function check(): Promise<void> {
    const { id, key } = anyone();
    const answer = await time("check", () =>
      post(keys.checking, "/access/check", checkOf(key), [200]),
    );
    mustAllow({ ...answer, applicationId: answer.application_id }, id);
  }

  async function checkByGrpc(): Promise<void> {
    const { id, key } = anyone();
    mustAllow(await time("check (gRPC)", () => checker.access.checkAccess(checkOf(key))), id);
  }

  async function checkMany(): Promise<void> {
    const asked = Array.from({ length: 20 }, anyone);
    const checks = asked.map(({ key }) => checkOf(key));
    const { results } = await time("check 20 (gRPC)", () =>
      checker.access.batchCheckAccess({ checks }),
    );
    assert.equal(results.length, asked.length, "a batch lacks answers");
    results.forEach((result, at) => {
      mustAllow(result, asked[at]?.id);
    });
  }

  async function list(): Promise<void> {
    const { data } = await time("list", () => get(keys.management, "/applications?size=20"));
    assert.equal(data.length, 20, "a list lacks applications");
  }

  async function listEvents(): Promise<void> {
    const { data } = await time("list events", () => get(keys.management, "/events?size=20"));
    assert(Array.isArray(data), "there is no list of events");
  }

  async function liveAndDie(): Promise<void> {
    const { id, key } = await time("create", () =>
      post(keys.management, "/applications", application, [201]),
    );
    const name = "Soaked more";
    const updated = await time("update", () =>
      call(keys.management, "PUT", `/applications/${id}`, {
        expect: [200],
        body: asJson({ name, permissions: ["token:read", "token:create"] }),
      }),
    );
    assert.equal(updated.name, name, "an update was lost");
    const renewed = await time("regenerate", () =>
      manager.applications.regenerateApplicationKey({ id }),
    );
    await time("use a replaced key", () => get(key, "/whoami", [401, 429]));
    const me = await time("who am I", () => get(renewed.key ?? "", "/whoami"));
    assert.equal(me.application_id, id, "a key was taken for another's");
    await remove(id);
    await time("use a deleted key", () => get(renewed.key ?? "", "/whoami", [401, 429]));
  }

  async function openSession(): Promise<void> {
    const opened = await time("open a session", () => post(keys.public, "/sessions", {}, [201]));
    const { nonce, session_key: sessionKey } = opened;
    const grants = { nonce, permissions: ["token:read"] };
    await time("authorize", () => post(anyone().key, "/sessions/authorize", grants, [204]));
    const checkSession = () =>
      time("check a session (gRPC)", () => checker.access.checkAccess(checkOf(sessionKey)));
    const before = await checkSession();
    assert(before.allowed, `a session that was authorized is ${before.reason}`);
    await time("end a session", () => manager.sessions.deleteSession({ id: opened.id }));
    assert.equal((await checkSession()).reason, "unknown_key", "a session outlives its end");
  }

  async function watch(): Promise<void> {
    const leaving = new AbortController();
    const timer = delay(watchTime).then(() => leaving.abort());
    let messages = 0;
    await time("watch", async () => {
      try {
        const stream = checker.access.watchCredentials({ heartbeatMs: 500 }, leaving);
        for await (const _ of stream) {
          messages++;
        }
      } catch (error) {
        if (!leaving.signal.aborted) {
          throw error;
        }
      }
      assert(leaving.signal.aborted, "a watch ended by itself");
    });
    assert(messages > 0, "a watch was told nothing");
    await timer;
  }

  async function createLarge(): Promise<void> {
    const options = { expect: [201], body: privateApplication };
    const { id } = await time("create as large as it gets", () =>
      call(keys.management, "POST", "/applications", options),
    );
    await remove(id);
  }

  /** Each as often as its number says, of all together. */
  const journeys: readonly [number, Journey][] = [
    [30, readByKey],
    [30, checkByGrpc],
    [8, check],
    [3, checkMany],
    [4, readById],
    [3, list],
    [2, listEvents],
    [8, liveAndDie],
    [8, openSession],
    [0.2, watch],
    [1, createLarge],
    [2, () => time("send nonsense", () => post(keys.management, "/applications", {}, [400]))],
    [1, () => time("use a wrong key", () => get("lk_prv_wrong", "/whoami", [401, 429]))],
    [0.2, () => time("is it ready", () => get("", "/readyz"))],
    [0.2, () => time("read metrics", () => get("", "/metrics"))],
  ];
  const all = journeys.reduce((sum, [share]) => sum + share, 0);

  return {
    next() {
      let at = Math.random() * all;
      const found = journeys.find(([share]) => {
        at -= share;
        return at < 0;
      });
      return record.attempt(found?.[1] ?? liveAndDie);
    },

    close() {
      rest.close();
      manager.close();
      checker.close();
    },
  };
}

/** Every application may read tokens, so a check says so of the one whose key was shown. */
function mustAllow(
  { allowed, applicationId }: Pick<CheckAccessResponse, "allowed" | "applicationId">,
  id: string | undefined,
): void {
  assert(allowed, `what ${id} may was refused`);
  assert.equal(applicationId, id, "a key was taken for another's");
}

import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { CheckAccessResponse } from "../../gen/latchkey/v1/access_service_pb.js";
import { type CreatedApplication, type Keys, privateApplication } from "../seed.js";
import { createGrpcClient, createRestClient } from "./clients.js";
import type { Recorder } from "./recorder.js";

/** A sequence of requests of one caller. Deletes what it creates. */
type Journey = () => Promise<unknown>;

export interface Journeys {
  /** Runs a journey, chosen at random by weight, and returns whether it succeeded. */
  next(): Promise<boolean>;
  close(): void;
}

const application = { name: "Soak test", type: "private", permissions: ["token:read"] };
const toJson = (value: object) => JSON.stringify(value);

/** How long a watch stays open. */
const watchMs = 3_000;

/** Mostly reads and checks, some changes and watches, and some invalid requests. Each verifies its responses. */
export function createJourneys(url: string, keys: Keys, recorder: Recorder): Journeys {
  const rest = createRestClient(url);
  const { call } = rest;
  const manager = createGrpcClient(url, keys.management);
  const checker = createGrpcClient(url, keys.checking);
  const { time } = recorder;
  let next = 0;
  const nextApplication = () => keys.private[next++ % keys.private.length] as CreatedApplication;
  const get = (key: string, path: string, expect = [200]) => call(key, "GET", path, { expect });
  const post = (key: string, path: string, body: object, expect: number[]) =>
    call(key, "POST", path, { expect, body: toJson(body) });
  const remove = (id: string) =>
    time("delete", () => call(keys.management, "DELETE", `/applications/${id}`, { expect: [204] }));
  const permission = "token:read";
  const createCheck = (key: string) =>
    ({ principal: { case: "key", value: key }, permission }) as const;

  async function readByKey(): Promise<void> {
    const { id, key } = nextApplication();
    const application = await time("read by key", () => get(key, "/applications/key"));
    assert.equal(application.id, id, "a key returned another application");
  }

  async function readById(): Promise<void> {
    const { id } = nextApplication();
    const application = await time("read by id (gRPC)", () =>
      manager.applications.getApplication({ id }),
    );
    assert.equal(application.id, id, "a read returned another application");
  }

  async function check(): Promise<void> {
    const { id, key } = nextApplication();
    const decision = await time("check", () =>
      post(keys.checking, "/access/check", { key, permission }, [200]),
    );
    assertAllowed({ ...decision, applicationId: decision.application_id }, id);
  }

  async function checkOverGrpc(): Promise<void> {
    const { id, key } = nextApplication();
    assertAllowed(
      await time("check (gRPC)", () => checker.access.checkAccess(createCheck(key))),
      id,
    );
  }

  async function checkBatch(): Promise<void> {
    const applications = Array.from({ length: 20 }, nextApplication);
    const checks = applications.map(({ key }) => createCheck(key));
    const { results } = await time("check 20 (gRPC)", () =>
      checker.access.batchCheckAccess({ checks }),
    );
    assert.equal(results.length, applications.length, "a batch lacks results");
    results.forEach((result, index) => {
      assertAllowed(result, applications[index]?.id);
    });
  }

  async function list(): Promise<void> {
    const { data } = await time("list", () => get(keys.management, "/applications?size=20"));
    assert.equal(data.length, 20, "a list lacks applications");
  }

  async function listEvents(): Promise<void> {
    const { data } = await time("list events", () => get(keys.management, "/events?size=20"));
    assert(Array.isArray(data), "the list of events is missing");
  }

  async function runLifecycle(): Promise<void> {
    const { id, key } = await time("create", () =>
      post(keys.management, "/applications", application, [201]),
    );
    const name = "Soak test, updated";
    const updated = await time("update", () =>
      call(keys.management, "PUT", `/applications/${id}`, {
        expect: [200],
        body: toJson({ name, permissions: ["token:read", "token:create"] }),
      }),
    );
    assert.equal(updated.name, name, "an update was lost");
    const renewed = await time("regenerate", () =>
      manager.applications.regenerateApplicationKey({ id }),
    );
    await time("use a replaced key", () => get(key, "/whoami", [401, 429]));
    const me = await time("whoami", () => get(renewed.key ?? "", "/whoami"));
    assert.equal(me.application_id, id, "a key returned another application");
    await remove(id);
    await time("use a deleted key", () => get(renewed.key ?? "", "/whoami", [401, 429]));
  }

  async function openSession(): Promise<void> {
    const opened = await time("open a session", () => post(keys.public, "/sessions", {}, [201]));
    const { nonce, session_key: sessionKey } = opened;
    const grants = { nonce, permissions: ["token:read"] };
    await time("authorize", () =>
      post(nextApplication().key, "/sessions/authorize", grants, [204]),
    );
    const checkSession = () =>
      time("check a session (gRPC)", () => checker.access.checkAccess(createCheck(sessionKey)));
    const before = await checkSession();
    assert(before.allowed, `an authorized session was refused: ${before.reason}`);
    await time("delete a session", () => manager.sessions.deleteSession({ id: opened.id }));
    assert.equal((await checkSession()).reason, "unknown_key", "a deleted session is still valid");
  }

  async function watch(): Promise<void> {
    const abort = new AbortController();
    const timer = delay(watchMs).then(() => abort.abort());
    let messages = 0;
    await time("watch", async () => {
      try {
        const stream = checker.access.watchCredentials({ heartbeat: durationFromMs(500) }, abort);
        for await (const _ of stream) {
          messages++;
        }
      } catch (error) {
        if (!abort.signal.aborted) {
          throw error;
        }
      }
      assert(abort.signal.aborted, "the service closed a watch");
    });
    assert(messages > 0, "a watch received no message");
    await timer;
  }

  async function createWithRules(): Promise<void> {
    const options = { expect: [201], body: privateApplication };
    const { id } = await time("create with rules", () =>
      call(keys.management, "POST", "/applications", options),
    );
    await remove(id);
  }

  const journeys: readonly [weight: number, Journey][] = [
    [30, readByKey],
    [30, checkOverGrpc],
    [8, check],
    [3, checkBatch],
    [4, readById],
    [3, list],
    [2, listEvents],
    [8, runLifecycle],
    [8, openSession],
    [0.2, watch],
    [1, createWithRules],
    [
      2,
      () =>
        time("send an invalid request", () => post(keys.management, "/applications", {}, [400])),
    ],
    [1, () => time("use a wrong key", () => get("lk_prv_wrong", "/whoami", [401, 429]))],
    [0.2, () => time("readiness", () => get("", "/readyz"))],
    [0.2, () => time("read metrics", () => get("", "/metrics"))],
  ];
  const totalWeight = journeys.reduce((sum, [weight]) => sum + weight, 0);

  return {
    next() {
      let remaining = Math.random() * totalWeight;
      const chosen = journeys.find(([weight]) => {
        remaining -= weight;
        return remaining < 0;
      });
      return recorder.attempt(chosen?.[1] ?? runLifecycle);
    },

    close() {
      rest.close();
      manager.close();
      checker.close();
    },
  };
}

/** Every application may read tokens, so its check must be allowed. */
function assertAllowed(
  { allowed, applicationId }: Pick<CheckAccessResponse, "allowed" | "applicationId">,
  id: string | undefined,
): void {
  assert(allowed, `a check of ${id} was refused`);
  assert.equal(applicationId, id, "a key returned another application");
}

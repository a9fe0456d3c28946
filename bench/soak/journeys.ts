import { setTimeout as delay } from "node:timers/promises";
import { createLatchkeyClient } from "../../src/client/node-client.js";
import { type Keys, type Made, privateApplication } from "../seed.js";
import type { Record } from "./record.js";
import { createRest } from "./rest.js";

/** Something that a caller does, in one request or a few. What it makes it removes again. */
type Journey = () => Promise<unknown>;

export interface Journeys {
  /** Begins one of the journeys, each as often as it is in proportion. */
  next(): Promise<unknown>;
  close(): void;
}

const application = { name: "Soaked", type: "private", permissions: ["token:read"] };
const asJson = (value: object) => JSON.stringify(value);

/** For how long a watch is held open, in milliseconds. */
const watchTime = 3_000;

/** The mix of a day: mostly reads and checks, some changes, watches that come and go, some nonsense. */
export function createJourneys(url: string, keys: Keys, record: Record): Journeys {
  const rest = createRest(url);
  const { call } = rest;
  const manager = createLatchkeyClient({ url, key: keys.management });
  const checker = createLatchkeyClient({ url, key: keys.checking });
  const { time } = record;
  let turn = 0;
  const anyone = () => keys.private[turn++ % keys.private.length] as Made;
  const get = (key: string, path: string, expect = [200]) => call(key, "GET", path, { expect });
  const post = (key: string, path: string, body: object, expect: number[]) =>
    call(key, "POST", path, { expect, body: asJson(body) });

  async function liveAndDie(): Promise<void> {
    const { id, key } = await time("create", () =>
      post(keys.management, "/applications", application, [201]),
    );
    await time("update", () =>
      call(keys.management, "PUT", `/applications/${id}`, {
        expect: [200],
        body: asJson({ name: "Soaked more", permissions: ["token:read", "token:create"] }),
      }),
    );
    const renewed = await time("regenerate", () =>
      manager.applications.regenerateApplicationKey({ id }),
    );
    await time("use a replaced key", () => get(key, "/whoami", [401, 429]));
    await time("who am I", () => get(renewed.key ?? "", "/whoami"));
    await time("delete", () =>
      call(keys.management, "DELETE", `/applications/${id}`, { expect: [204] }),
    );
  }

  async function openSession(): Promise<void> {
    const opened = await time("open a session", () => post(keys.public, "/sessions", {}, [201]));
    const { nonce, session_key: sessionKey } = opened;
    const grants = { nonce, permissions: ["token:read"] };
    await time("authorize", () => post(anyone().key, "/sessions/authorize", grants, [200, 204]));
    await time("check a session (gRPC)", async () => {
      const check = { key: sessionKey, permission: "token:read" };
      const { allowed, reason } = await checker.access.checkAccess(check);
      if (!allowed) {
        throw new Error(`a session that was authorized is ${reason}`);
      }
    });
    await time("end a session", () => manager.sessions.deleteSession({ id: opened.id }));
  }

  async function watch(): Promise<void> {
    const leaving = new AbortController();
    const timer = delay(watchTime).then(() => leaving.abort());
    await time("watch", async () => {
      try {
        const stream = checker.access.watchCredentials({ heartbeatMs: 500 }, leaving);
        for await (const _ of stream) {
          // It only listens.
        }
      } catch (error) {
        if (!leaving.signal.aborted) {
          throw error;
        }
      }
    });
    await timer;
  }

  const check = () => ({ key: anyone().key, permission: "token:read" });

  /** Each as often as its number says, of all together. */
  const journeys: readonly [number, Journey][] = [
    [30, () => time("read by key", () => get(anyone().key, "/applications/key"))],
    [30, () => time("check (gRPC)", () => checker.access.checkAccess(check()))],
    [8, () => time("check", () => post(keys.checking, "/access/check", check(), [200]))],
    [
      3,
      () =>
        time("check 20 (gRPC)", () =>
          checker.access.batchCheckAccess({ checks: Array.from({ length: 20 }, check) }),
        ),
    ],
    [4, () => time("read by id (gRPC)", () => manager.applications.getApplication(anyone()))],
    [3, () => time("list", () => get(keys.management, "/applications?size=20"))],
    [2, () => time("list events", () => get(keys.management, "/events?size=20"))],
    [8, liveAndDie],
    [8, openSession],
    [0.2, watch],
    [2, () => time("send nonsense", () => post(keys.management, "/applications", {}, [400]))],
    [1, () => time("use a wrong key", () => get("lk_prv_wrong", "/whoami", [401, 429]))],
    [
      1,
      () =>
        time("create as large as it gets", () =>
          call(keys.management, "POST", "/applications", {
            expect: [201],
            body: privateApplication,
          }),
        ).then(({ id }) =>
          time("delete", () =>
            call(keys.management, "DELETE", `/applications/${id}`, { expect: [204] }),
          ),
        ),
    ],
  ];
  const all = journeys.reduce((sum, [share]) => sum + share, 0);

  return {
    next() {
      let at = Math.random() * all;
      const found = journeys.find(([share]) => {
        at -= share;
        return at < 0;
      });
      return (found?.[1] ?? liveAndDie)();
    },

    close() {
      rest.close();
      manager.close();
      checker.close();
    },
  };
}

import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { toGrantsMessage } from "../../src/auth/grants.js";
import type { Grants } from "../../src/contract/grants.js";
import { type Api, ApiFailure, keyOf } from "../support/api/api.js";
import { createRestApi } from "../support/api/rest.js";
import { repetitions } from "../support/jest/suite.js";
import { rateLimitsOff } from "../support/service/rate-limits-off.js";
import { startServer, type TestServer } from "../support/service/server.js";
import { type Chain, chain, givesFreely, namesIn, ownNamesIn, type Step } from "./grant-chains.js";

const numRuns = repetitions({ quick: 10, full: 30 });

let server: TestServer;
let api: Api;

beforeAll(async () => {
  server = await startServer("lmdb", { environment: rateLimitsOff });
  api = createRestApi(server.url);
});

afterAll(() => server?.close());

/** Runs the steps of a chain in a tenant and returns everything that is held afterwards. */
async function follow({ start, steps }: Chain): Promise<Grants[]> {
  const root = await server.createTenant();
  const ids: string[] = [];
  const keys: string[] = [];
  const create = async (key: string, type: string, grants: Grants) => {
    const made = await api.createApplication(key, {
      name: "made",
      type,
      ...toGrantsMessage(grants),
    });
    ids.push(made.id);
    keys.push(keyOf(made));
  };
  for (const { type, ...grants } of start) {
    await create(root.key, type, grants);
  }
  const shop = await api.createApplication(root.key, {
    name: "shop",
    type: "public",
    permissions: ["shop:visit"],
  });

  async function take({ kind, caller, target, type, grants }: Step): Promise<void> {
    const key = keys[caller % keys.length] as string;
    const id = ids[target % ids.length] as string;
    if (kind === "create") {
      await create(key, type, grants);
    } else if (kind === "update") {
      await api.updateApplication(key, { id, name: "changed", ...toGrantsMessage(grants) });
    } else {
      const { permissions } = toGrantsMessage(grants);
      const { nonce, sessionKey } = await api.createSession(keyOf(shop));
      const expiresAt = timestampFromMs(server.clock.now() + 60_000);
      await api.authorizeSession(key, { nonce, permissions, expiresAt });
      keys.push(sessionKey);
    }
  }

  for (const step of steps) {
    await take(step).catch((error) => expect(error).toBeInstanceOf(ApiFailure));
  }
  const { data } = await api.listApplications(root.key, { size: 100 });
  const { data: sessions } = await api.listSessions(root.key, { size: 100 });
  const made = data.filter(({ id }) => ids.includes(id));
  return [...made, ...sessions].map(({ permissions, rules }) => ({ permissions, rules }));
}

describe("a chain of calls", () => {
  it("never creates a permission of this service that nobody held", async () => {
    await fc.assert(
      fc.asyncProperty(chain, async (chain) => {
        const held = new Set(ownNamesIn(chain.start));
        const reached = ownNamesIn(await follow(chain));
        expect(reached.filter((name) => !held.has(name))).toEqual([]);
      }),
      { numRuns },
    );
  });

  it("never creates a permission that nobody held, without a management application at the start", async () => {
    await fc.assert(
      fc.asyncProperty(chain, async (chain) => {
        fc.pre(!chain.start.some(givesFreely));
        const held = new Set(namesIn(chain.start));
        const reached = namesIn(await follow(chain));
        expect(reached.filter((name) => !held.has(name))).toEqual([]);
      }),
      { numRuns },
    );
  });
});

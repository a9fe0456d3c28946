import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import type { Grants } from "../../src/contract/grants.js";
import { showGrants } from "../../src/services/rules.js";
import { type Api, ApiFailure, keyOf } from "../support/api/api.js";
import { createRestApi } from "../support/api/rest.js";
import { repetitions } from "../support/jest/suite.js";
import { rateLimitsOff } from "../support/service/rate-limits-off.js";
import { startServer, type TestServer } from "../support/service/server.js";
import {
  type Chain,
  canGrantUnheldPermissions,
  chain,
  listOwnPermissions,
  listPermissions,
  type Step,
} from "./grant-chains.js";

const numRuns = repetitions({ quick: 10, full: 15 });

let server: TestServer;
let api: Api;

beforeAll(async () => {
  server = await startServer("lmdb", { environment: rateLimitsOff });
  api = createRestApi(server.url);
});

afterAll(() => server?.close());

/** Runs a chain in a new tenant and returns the resulting grants. */
async function runChain({ start, steps }: Chain): Promise<Grants[]> {
  const root = await server.createTenant();
  const ids: string[] = [];
  const keys: string[] = [];
  const create = async (key: string, type: string, grants: Grants) => {
    const created = await api.createApplication(key, {
      name: "created",
      type,
      ...showGrants(grants),
    });
    ids.push(created.id);
    keys.push(keyOf(created));
  };
  for (const { type, ...grants } of start) {
    await create(root.key, type, grants);
  }
  const shop = await api.createApplication(root.key, {
    name: "shop",
    type: "public",
    permissions: ["shop:visit"],
  });

  async function runStep({ kind, caller, target, type, grants }: Step): Promise<void> {
    const key = keys[caller % keys.length] as string;
    const id = ids[target % ids.length] as string;
    if (kind === "create") {
      await create(key, type, grants);
    } else if (kind === "update") {
      await api.updateApplication(key, { id, name: "changed", ...showGrants(grants) });
    } else {
      const { permissions } = showGrants(grants);
      const { nonce, sessionKey } = await api.createSession(keyOf(shop));
      const expiresAt = timestampFromMs(server.clock.now() + 60_000);
      await api.authorizeSession(key, { nonce, permissions, expiresAt });
      keys.push(sessionKey);
    }
  }

  for (const step of steps) {
    await runStep(step).catch((error) => expect(error).toBeInstanceOf(ApiFailure));
  }
  const { data } = await api.listApplications(root.key, { size: 100 });
  const { data: sessions } = await api.listSessions(root.key, { size: 100 });
  const applications = data.filter(({ id }) => ids.includes(id));
  return [...applications, ...sessions].map(({ permissions, rules }) => ({ permissions, rules }));
}

describe("a chain of calls", () => {
  it("never grants a permission of this service that no application held", async () => {
    await fc.assert(
      fc.asyncProperty(chain, async (chain) => {
        const held = new Set(listOwnPermissions(chain.start));
        const granted = listOwnPermissions(await runChain(chain));
        expect(granted.filter((name) => !held.has(name))).toEqual([]);
      }),
      { numRuns },
    );
  });

  it("never grants a permission that no application held, if it starts without a management application", async () => {
    await fc.assert(
      fc.asyncProperty(chain, async (chain) => {
        fc.pre(!chain.start.some(canGrantUnheldPermissions));
        const held = new Set(listPermissions(chain.start));
        const granted = listPermissions(await runChain(chain));
        expect(granted.filter((name) => !held.has(name))).toEqual([]);
      }),
      { numRuns },
    );
  });
});

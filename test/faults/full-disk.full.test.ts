import { statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, jest } from "@jest/globals";
import { type Api, ApiFailure, keyOf } from "../support/api/api.js";
import { createRestApi } from "../support/api/rest.js";
import { forEachConcurrently } from "../support/concurrency.js";
import { itIf } from "../support/jest/suite.js";
import { hangTimeout, until } from "../support/until.js";
import { useEmbeddedServices } from "./support/embedded-service.js";
import { canMount, fillDisk, resizeDisk, whyNoMount, withSmallDisk } from "./support/small-disk.js";

jest.setTimeout(3 * hangTimeout);

const start = useEmbeddedServices();

const small = { name: "small", type: "public", permissions: ["token:use"] };

/** Fills several pages of the store, so that few fill the disk. */
const large = {
  name: "large",
  type: "private",
  permissions: ["token:read"],
  rules: Array.from({ length: 20 }, (_, at) => ({
    description: "x".repeat(200),
    priority: at + 1,
    container: "/pci/",
    transform: "mask",
    permissions: ["token:read"],
  })),
};

/** Creates applications concurrently until stopped. `stop` returns the unexpected errors. */
function flood(api: Api, key: string) {
  const counts = { created: 0, refused: 0 };
  const unexpected: unknown[] = [];
  let isStopped = false;
  const done = forEachConcurrently(
    8,
    (function* () {
      while (!isStopped) {
        yield;
      }
    })(),
    async () => {
      try {
        await api.createApplication(key, large);
        counts.created++;
      } catch (error) {
        counts.refused++;
        if (!(error instanceof ApiFailure) || error.reason !== "store_unavailable") {
          unexpected.push(error);
        }
      }
    },
  );
  return {
    counts,
    async stop() {
      isStopped = true;
      await done;
      return unexpected;
    },
  };
}

/** Creates credentials, and returns functions that revoke them. */
async function createRevocations(api: Api, manager: string, count: number) {
  const revocations: (() => Promise<unknown>)[] = [];
  const shop = keyOf(await api.createApplication(manager, small));
  const kinds: ((id: string) => Promise<() => Promise<unknown>>)[] = [
    async (id) => () => api.disableApplication(manager, { id }),
    async (id) => () => api.deleteApplication(manager, { id }),
    async (id) => () => api.regenerateApplicationKey(manager, { id }),
    async (id) => () => api.revokeAllSessions(manager, { id }),
    async (id) => {
      const { data } = await api.listApplicationKeys(manager, { id });
      return () => api.deleteApplicationKey(manager, { id, keyId: data[0]?.id as string });
    },
  ];
  const sessions = Math.min(100, count / 10);
  await forEachConcurrently(
    8,
    Array(sessions).keys(),
    async () => void (await api.createSession(shop)),
  );
  const { data } = await api.listSessions(manager, { size: sessions });
  revocations.push(
    ...data.map(
      ({ id }) =>
        () =>
          api.deleteSession(manager, { id }),
    ),
  );
  await forEachConcurrently(8, Array(count - sessions).keys(), async (at) => {
    const { id } = await api.createApplication(manager, small);
    revocations.push(await (kinds[at % kinds.length] as (typeof kinds)[0])(id));
  });
  return revocations;
}

async function collectErrors(revocations: readonly (() => Promise<unknown>)[]) {
  const errors: unknown[] = [];
  await forEachConcurrently(16, revocations, async (revoke) => {
    await revoke().catch((error) => errors.push(error));
  });
  return errors;
}

describe("a service whose disk is filled by a flood of creates", () => {
  const title = "revokes 1,000 of 1,000 credentials, refuses creates with 503, and recovers";
  itIf(canMount(), title, whyNoMount, () =>
    withSmallDisk(40, async (disk) => {
      const folder = join(disk, "data");
      const service = await start(folder, { WORKERS: "2" });
      const manager = service.firstKey;
      const api = createRestApi(service.url);
      const revocations = await createRevocations(api, manager, 1_000);
      expect(revocations).toHaveLength(1_000);

      const creates = flood(api, manager);
      await until(async () => creates.counts.refused > 100);
      await fillDisk(disk);
      const { created, refused } = { ...creates.counts };
      expect(await collectErrors(revocations)).toEqual([]);
      expect(creates.counts.created).toBe(created);
      expect(creates.counts.refused).toBeGreaterThan(refused);
      expect((await fetch(`${service.url}/readyz`)).status).toBe(200);
      expect(await creates.stop()).toEqual([]);

      resizeDisk(disk, 80);
      await until(async () => statSync(join(folder, "reserve")).size >= 16 * 1024 * 1024);
      await until(() =>
        api.createApplication(manager, small).then(
          () => true,
          () => false,
        ),
      );
    }),
  );
});

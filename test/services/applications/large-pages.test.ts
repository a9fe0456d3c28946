import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { currentTick } from "../../../src/lib/event-loop.js";
import type { ApplicationRecord } from "../../../src/store/port/records.js";
import { seedTenant, type Tenant } from "../../contract/api/fixtures.js";
import { createRestApi } from "../../support/api/rest.js";
import { startServer, type TestServer } from "../../support/service/server.js";
import { overrideStore } from "../../support/service/store.js";

const pages = 6;

describe("pages of large applications that are ready at once", () => {
  let base: TestServer;
  let tenant: Tenant;
  let server: TestServer;
  const ticks: number[] = [];

  beforeEach(async () => {
    base = await startServer();
    tenant = await seedTenant(base, createRestApi(base.url));
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    let requests = 0;
    const { applications } = base.store;
    const store = overrideStore(base.store, {
      applications: {
        async list(query, signal) {
          const page = await applications.list(query, signal);
          if (++requests === pages) {
            release();
          }
          await released;
          return { ...page, items: page.items.map(asLarge) };
        },
      },
    });
    server = await startServer("lmdb", { store });
  });

  afterEach(async () => {
    await server.close();
    await base.close();
  });

  /** Reading its rules takes as long as converting those of a large record. */
  function asLarge(record: ApplicationRecord): ApplicationRecord {
    return Object.defineProperty({ ...record }, "rules", {
      get() {
        ticks.push(currentTick());
        const end = performance.now() + 15;
        while (performance.now() < end) {
          // Busy loop.
        }
        return [];
      },
    });
  }

  it("are converted one record per tick, so that other calls run in between", async () => {
    const api = createRestApi(server.url);
    const listed = await Promise.all(
      Array.from({ length: pages }, () => api.listApplications(tenant.root.key)),
    );
    const records = listed.flatMap(({ data }) => data);
    expect(records).toHaveLength(3 * pages);
    expect(ticks).toHaveLength(records.length);
    // The first two may be converted before and after the input of one tick.
    expect(new Set(ticks).size).toBeGreaterThanOrEqual(records.length - 1);
  });
});

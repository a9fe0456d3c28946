import { setTimeout as delay } from "node:timers/promises";
import { describe, expect, it } from "@jest/globals";
import { spreadOf } from "../../bench/statistics.js";
import { keyOf } from "../support/api.js";
import { createRestApi } from "../support/api-rest.js";
import { inLanes } from "../support/in-lanes.js";
import { withFolder } from "../support/process.js";
import { auditApplication, auditSession } from "./support/crash-audit.js";
import type { CrashLedger } from "./support/crash-ledger.js";
import { type CrashLoadKeys, grants, writeUntilCut } from "./support/crash-load.js";
import { useEmbeddedServices } from "./support/embedded-service.js";
import { createRandom } from "./support/random.js";

/**
 * Within which a service serves again that was killed, in milliseconds. It is
 * the median that is held to it and not the longest, since other tests have
 * the machine for seconds at a time; and where its first start took longer
 * than half of it, to be twice as slow is enough.
 */
const longestStart = 5_000;
/** For how long it writes at most before it is killed. */
const longestLife = 400;

const start = useEmbeddedServices();
/** Sessions are to last until they are looked at. */
const environment = { SESSION_TTL: "1h" };

async function createKeys(url: string, manager: string): Promise<CrashLoadKeys> {
  const api = createRestApi(url);
  const make = async (type: string, permissions: string[]) =>
    keyOf(await api.createApplication(manager, { name: type, type, permissions }));
  const [page, backend] = [
    await make("public", ["token:create"]),
    await make("private", grants.permissions),
  ];
  return { manager, page, backend };
}

describe("a service on the embedded store that is killed while it writes", () => {
  it.each([
    ["1", 6, 1],
    ["2", 4, 2],
  ])(
    "keeps all that it acknowledged, with WORKERS=%s, %i times",
    (WORKERS, kills, seed) =>
      withFolder(async (folder) => {
        const random = createRandom(seed);
        let service = await start(folder, { ...environment, WORKERS });
        const keys = await createKeys(service.url, service.firstKey);
        const everything: CrashLedger = { applications: [], sessions: [] };
        const { startedIn: firstStart } = service;
        const starts: number[] = [];
        for (let kill = 0; kill < kills; kill++) {
          const ledger: CrashLedger = { applications: [], sessions: [] };
          const writing = writeUntilCut(service.url, keys, ledger, random);
          await delay(50 + random() * longestLife);
          await service.kill();
          await writing;

          service = await start(folder, { ...environment, WORKERS });
          starts.push(service.startedIn);
          await audit(service.url, keys, ledger);
          everything.applications.push(...ledger.applications);
          everything.sessions.push(...ledger.sessions);
        }
        await audit(service.url, keys, everything);
        expect(spreadOf(starts).median).toBeLessThan(Math.max(longestStart, 2 * firstStart));
        expect(everything.applications.length).toBeGreaterThan(kills);
        expect(everything.sessions.length).toBeGreaterThan(kills);
      }),
    120_000,
  );
});

/** Looks at a few at a time. */
async function audit(url: string, keys: CrashLoadKeys, { applications, sessions }: CrashLedger) {
  const api = createRestApi(url);
  const looks = [
    ...applications.map((account) => () => auditApplication(api, keys, account)),
    ...sessions.map((session) => () => auditSession(api, keys, session)),
  ];
  await inLanes(8, looks, (look) => look());
}

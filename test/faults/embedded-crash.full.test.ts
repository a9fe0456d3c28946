import { describe, it } from "@jest/globals";
import { keyOf } from "../support/api/api.js";
import { createRestApi } from "../support/api/rest.js";
import { forEachConcurrently } from "../support/concurrency.js";
import { withTempFolder } from "../support/service/process.js";
import { until } from "../support/until.js";
import { auditApplication, auditSession } from "./support/crash-audit.js";
import type { CrashLedger } from "./support/crash-ledger.js";
import { type CrashLoadKeys, grants, writeUntilCut } from "./support/crash-load.js";
import { useEmbeddedServices } from "./support/embedded-service.js";
import { createRandom } from "./support/random.js";

/** How many records the load makes at most before the service is killed. */
const mostRecords = 60;

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

describe("a service on the embedded store that is killed during writes", () => {
  it.each([
    ["1", 5, 1],
    ["2", 3, 2],
  ])(
    "keeps all acknowledged writes, with WORKERS=%s, %i times",
    (WORKERS, kills, seed) =>
      withTempFolder(async (folder) => {
        const random = createRandom(seed);
        let service = await start(folder, { ...environment, WORKERS });
        const keys = await createKeys(service.url, service.firstKey);
        const everything: CrashLedger = { applications: [], sessions: [] };
        const starts = [service.startedIn];
        for (let kill = 0; kill < kills; kill++) {
          const ledger: CrashLedger = { applications: [], sessions: [] };
          const writing = writeUntilCut(service.url, keys, ledger, random);
          const enough = 2 + Math.floor(random() * mostRecords);
          await until(async () => {
            const { applications, sessions } = ledger;
            return (
              Math.min(applications.length, sessions.length) >= 1 &&
              applications.length + sessions.length >= enough
            );
          });
          await service.kill();
          await writing;

          service = await start(folder, { ...environment, WORKERS });
          starts.push(service.startedIn);
          await audit(service.url, keys, ledger);
          everything.applications.push(...ledger.applications);
          everything.sessions.push(...ledger.sessions);
        }
        await audit(service.url, keys, everything);
        const shown = starts.map(Math.round).join(", ");
        console.info(`WORKERS=${WORKERS}: the first start and those after a kill took ${shown} ms`);
      }),
    600_000,
  );
});

/** Looks at a few at a time. */
async function audit(url: string, keys: CrashLoadKeys, { applications, sessions }: CrashLedger) {
  const api = createRestApi(url);
  const looks = [
    ...applications.map((account) => () => auditApplication(api, keys, account)),
    ...sessions.map((session) => () => auditSession(api, keys, session)),
  ];
  await forEachConcurrently(8, looks, (look) => look());
}

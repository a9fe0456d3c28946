import { describe, it } from "@jest/globals";
import { keyOf } from "../support/api/api.js";
import { createRestApi } from "../support/api/rest.js";
import { forEachConcurrently } from "../support/concurrency.js";
import { withTempFolder } from "../support/service/run-latchkey.js";
import { until } from "../support/until.js";
import {
  type ExpectedState,
  grants,
  type LoadKeys,
  writeUntilDisconnected,
} from "./support/crash-load.js";
import { verifyApplication, verifySession } from "./support/crash-verification.js";
import { useEmbeddedServices } from "./support/embedded-service.js";
import { createRandom } from "./support/random.js";

/** The maximum number of records before a kill. */
const maxRecords = 60;

const start = useEmbeddedServices();
/** Sessions must last until they are verified. */
const environment = { SESSION_TTL: "1h" };

async function createKeys(url: string, manager: string): Promise<LoadKeys> {
  const api = createRestApi(url);
  const createKey = async (type: string, permissions: string[]) =>
    keyOf(await api.createApplication(manager, { name: type, type, permissions }));
  const [page, backend] = [
    await createKey("public", ["token:create"]),
    await createKey("private", grants.permissions),
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
        const total: ExpectedState = { applications: [], sessions: [] };
        const starts = [service.startedIn];
        for (let kill = 0; kill < kills; kill++) {
          const expected: ExpectedState = { applications: [], sessions: [] };
          const writing = writeUntilDisconnected(service.url, keys, expected, random);
          const enough = 2 + Math.floor(random() * maxRecords);
          await until(async () => {
            const { applications, sessions } = expected;
            return (
              Math.min(applications.length, sessions.length) >= 1 &&
              applications.length + sessions.length >= enough
            );
          });
          await service.kill();
          await writing;

          service = await start(folder, { ...environment, WORKERS });
          starts.push(service.startedIn);
          await verify(service.url, keys, expected);
          total.applications.push(...expected.applications);
          total.sessions.push(...expected.sessions);
        }
        await verify(service.url, keys, total);
        const times = starts.map(Math.round).join(", ");
        console.info(
          `WORKERS=${WORKERS}: the first start and the starts after a kill took ${times} ms`,
        );
      }),
    600_000,
  );
});

async function verify(url: string, keys: LoadKeys, { applications, sessions }: ExpectedState) {
  const api = createRestApi(url);
  const checks = [
    ...applications.map((application) => () => verifyApplication(api, keys, application)),
    ...sessions.map((session) => () => verifySession(api, keys, session)),
  ];
  await forEachConcurrently(8, checks, (check) => check());
}

import { afterAll, beforeAll, describe } from "@jest/globals";
import { describeAccess } from "./api-contract/access.js";
import { describeApplications } from "./api-contract/applications.js";
import { describeDisabling } from "./api-contract/applications-disable.js";
import { describeCallers } from "./api-contract/callers.js";
import { describeEvents } from "./api-contract/events.js";
import { describeIdempotency } from "./api-contract/idempotency.js";
import { describeKeyRotation } from "./api-contract/key-rotation.js";
import { describeLocking } from "./api-contract/locking.js";
import { describePlaces } from "./api-contract/origins-networks.js";
import { expectRefused, type Statuses } from "./api-contract/refused.js";
import { describeSessions } from "./api-contract/sessions.js";
import { describeManagedSessions } from "./api-contract/sessions-manage.js";
import type { ApiSubject } from "./api-contract/subject.js";
import type { Api } from "./support/api.js";
import { type Engine, engines, startServer, type TestServer } from "./support/server.js";

/** So long that nothing is swept while a test runs. */
const hour = 3_600_000;

interface ApiSuiteOptions {
  readonly client: string;
  /** On which it is tried; on all where nothing is said. A protocol and a store know nothing of each other. */
  readonly stores?: readonly Engine[];
  readonly statuses: Statuses;
  readonly connect: (server: TestServer) => Api;
}

/** What every protocol does, and every store, written once. */
export function describeApi({
  client,
  stores = engines,
  statuses,
  connect,
}: ApiSuiteOptions): void {
  describe.each(stores)(`client=${client}/store=%s`, (engine) => {
    let server: TestServer;
    let api: Api;

    beforeAll(async () => {
      server = await startServer(engine, { sweepInterval: hour });
      api = connect(server);
    });

    afterAll(async () => {
      api.close();
      await server.close();
    });

    const subject: ApiSubject = {
      server: () => server,
      api: () => api,
      refused: (call, reason) => expectRefused(call, reason, statuses),
    };
    describeApplications(subject);
    describeKeyRotation(subject);
    describeLocking(subject);
    describeIdempotency(subject);
    describeDisabling(subject);
    describeSessions(subject);
    describeManagedSessions(subject);
    describeCallers(subject);
    describePlaces(subject);
    describeAccess(subject);
    describeEvents(subject);
  });
}

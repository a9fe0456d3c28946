import { afterAll, beforeAll, describe } from "@jest/globals";
import type { Api } from "../../support/api/api.js";
import { isFullSuite } from "../../support/jest/suite.js";
import { type Engine, startServer, type TestServer } from "../../support/service/server.js";
import { describeAccess } from "./access.js";
import { describeApplications } from "./applications.js";
import { describeCreating } from "./applications-create.js";
import { describeDisabling } from "./applications-disable.js";
import { describeListing } from "./applications-list.js";
import { describeReading } from "./applications-read.js";
import { describeCallers } from "./callers.js";
import { describeEvents } from "./events.js";
import { describeIdempotency } from "./idempotency.js";
import { describeKeyRotation } from "./key-rotation.js";
import { describeLocking } from "./locking.js";
import { describeNoEscalation } from "./no-escalation.js";
import { describePlaces } from "./origins-networks.js";
import { expectRefused, type Statuses } from "./refused.js";
import { describeSessionLimits } from "./session-limits.js";
import { describeSessionQuotas } from "./session-quotas.js";
import { describeSessions } from "./sessions.js";
import { describeManagedSessions } from "./sessions-manage.js";
import type { ApiSubject } from "./subject.js";

/** So long that nothing is swept while a test runs. */
const hour = 3_600_000;

type Extent = "every case" | "essential cases";

interface ApiSuiteOptions {
  readonly client: string;
  /**
   * The stores to run against, each with every case or with the essential ones.
   * Every case on MongoDB is left to `npm run test:full`.
   */
  readonly stores: Partial<Record<Engine, Extent>>;
  readonly statuses: Statuses;
  readonly connect: (server: TestServer) => Api;
}

type DescribeCases = (subject: ApiSubject) => void;

/** Cases in which protocols differ: messages, lists, status codes, headers and error details. */
const essentialCases: readonly DescribeCases[] = [
  describeCreating,
  describeListing,
  describeReading,
  describeLocking,
  describeSessions,
  describeSessionQuotas,
  describeCallers,
];

const everyCase: readonly DescribeCases[] = [
  describeApplications,
  describeKeyRotation,
  describeLocking,
  describeIdempotency,
  describeDisabling,
  describeSessions,
  describeSessionQuotas,
  describeManagedSessions,
  describeCallers,
  describePlaces,
  describeAccess,
  describeEvents,
  describeNoEscalation,
  describeSessionLimits,
];

/** The API contract, which holds over every protocol and on every store. */
export function describeApi({ client, stores, statuses, connect }: ApiSuiteOptions): void {
  const extents = (Object.entries(stores) as [Engine, Extent][]).map(
    ([engine, extent]) =>
      [engine, isFullSuite || engine === "lmdb" ? extent : "essential cases"] as const,
  );
  describe.each(extents)(`client=${client}/store=%s, %s`, (engine, extent) => {
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
    const cases = extent === "every case" ? everyCase : essentialCases;
    for (const describeCases of cases) {
      describeCases(subject);
    }
  });
}

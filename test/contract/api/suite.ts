import { afterAll, beforeAll, describe } from "@jest/globals";
import type { Api } from "../../support/api/api.js";
import { type Engine, startServer, type TestServer } from "../../support/service/server.js";
import { describeBatchChecks } from "./access-batch.js";
import { describeCheckCallers } from "./access-callers.js";
import { describeAllowedChecks } from "./access-decisions.js";
import { describeDeniedChecks } from "./access-denials.js";
import { describeIntrospection } from "./access-introspection.js";
import { describeCheckPrincipals } from "./access-principals.js";
import { describeApplicationChanges } from "./applications-change.js";
import { describeCreateApplication } from "./applications-create.js";
import { describeDisableApplication } from "./applications-disable.js";
import { describeApplicationFields } from "./applications-fields.js";
import { describeGetApplication } from "./applications-get.js";
import { describeListApplications } from "./applications-list.js";
import { describeSearchApplications } from "./applications-search.js";
import { createExpectRefused, type Statuses } from "./assertions.js";
import { describeAuditLog } from "./audit-log.js";
import { describeListEvents } from "./events-list.js";
import type { ApiSubject } from "./fixtures.js";
import { describeGrantsLimit } from "./grants-limit.js";
import { describeIdempotency } from "./idempotency.js";
import { describeInvalidKeys } from "./invalid-keys.js";
import { describeKeyRevocation } from "./key-revocation.js";
import { describeKeyRotation } from "./key-rotation.js";
import { describeListCursors } from "./list-cursors.js";
import { describeOptimisticLocking } from "./optimistic-locking.js";
import { describeOverview } from "./overview.js";
import { describePrivilegeEscalation } from "./privilege-escalation.js";
import { describeRestrictions } from "./restrictions.js";
import { describeRuleIds } from "./rule-ids.js";
import { describeSessionLimits } from "./session-limits.js";
import { describeSessionManagement } from "./session-management.js";
import { describeSessionQuotas } from "./session-quotas.js";
import { describeSessions } from "./sessions.js";

/** Longer than the suite runs, so that nothing is swept. */
const sweepInterval = 3_600_000;

interface ApiSuiteOptions {
  readonly client: string;
  readonly store: Engine;
  readonly extent: "every case" | "essential cases";
  readonly statuses: Statuses;
  readonly connect: (server: TestServer) => Api;
}

type DescribeCases = (subject: ApiSubject) => void;

/** Areas in which protocols differ: messages, lists, status codes, headers and error details. */
const essentialCases: readonly DescribeCases[] = [
  describeGrantsLimit,
  describeCreateApplication,
  describeApplicationFields,
  describeListApplications,
  describeListCursors,
  describeGetApplication,
  describeOptimisticLocking,
  describeSessions,
  describeSessionQuotas,
  describeInvalidKeys,
  describeKeyRevocation,
];

const allCases: readonly DescribeCases[] = [
  describeCreateApplication,
  describeApplicationFields,
  describeListApplications,
  describeListCursors,
  describeSearchApplications,
  describeGetApplication,
  describeApplicationChanges,
  describeKeyRotation,
  describeOptimisticLocking,
  describeIdempotency,
  describeDisableApplication,
  describeSessions,
  describeSessionQuotas,
  describeSessionManagement,
  describeInvalidKeys,
  describeKeyRevocation,
  describeRestrictions,
  describeAllowedChecks,
  describeRuleIds,
  describeDeniedChecks,
  describeCheckPrincipals,
  describeCheckCallers,
  describeBatchChecks,
  describeIntrospection,
  describeAuditLog,
  describeListEvents,
  describeOverview,
  describePrivilegeEscalation,
  describeGrantsLimit,
  describeSessionLimits,
];

/** Runs the API contract over one protocol against one store. The contract of stores shows that they are equal. */
export function describeApi({ client, store, extent, statuses, connect }: ApiSuiteOptions): void {
  describe(`client=${client}/store=${store}, ${extent}`, () => {
    let server: TestServer;
    let api: Api;

    beforeAll(async () => {
      server = await startServer(store, { sweepInterval });
      api = connect(server);
    });

    afterAll(async () => {
      api.close();
      await server.close();
    });

    const subject: ApiSubject = {
      server: () => server,
      api: () => api,
      expectRefused: createExpectRefused(statuses),
    };
    const cases = extent === "every case" ? allCases : essentialCases;
    for (const describeCases of cases) {
      describeCases(subject);
    }
  });
}

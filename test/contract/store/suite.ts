import { afterEach, beforeEach, describe } from "@jest/globals";
import { createTestClock } from "../../support/clock.js";
import { describeAbortedLists } from "./aborted-lists.js";
import { describeApplications } from "./applications.js";
import { describeAuditEvents } from "./audit-events.js";
import { describeChanges } from "./changes.js";
import { describeEvents } from "./events.js";
import { describeExpirationEvents } from "./expiration-events.js";
import { describeExpiry } from "./expiry.js";
import { describeExternalIds, describeExternalIdTransfer } from "./external-ids.js";
import { describeFindMany } from "./find-many.js";
import { describeImportRevocations } from "./import-revocations.js";
import { describeImportedKeys, describeImportedKeyTransfer } from "./imported-keys.js";
import { describeKeys } from "./keys.js";
import { describeLargeEvents } from "./large-events.js";
import { describeLargeRecords } from "./large-records.js";
import { describeLastUsed } from "./last-used.js";
import { describeLists } from "./lists.js";
import { describeManagers } from "./managers.js";
import { describeMultiProcess } from "./multi-process.js";
import { describeRaces } from "./races.js";
import { describeSearch } from "./search.js";
import { describeSessionLists } from "./session-lists.js";
import { describeSessionQuotas } from "./session-quotas.js";
import { describeSessionRevocations } from "./session-revocations.js";
import { describeSessions } from "./sessions.js";
import { describeStoredResponses } from "./stored-responses.js";
import type { OpenStore, Subject } from "./subject.js";
import { describeTenants } from "./tenants.js";
import { describeTotals } from "./totals.js";
import { describeTransfer } from "./transfer.js";

/** Runs groups of tests, each test with an open store. */
function describeGroups(
  name: string,
  open: OpenStore,
  groups: readonly ((subject: () => Subject) => void)[],
): void {
  describe(name, () => {
    // Far in the future, so that no engine sweeps records by its own clock during a test.
    // Tests may share a store, so the clock never goes back.
    const clock = createTestClock(Date.UTC(2100, 0));
    let subject: Subject;

    beforeEach(async () => {
      clock.advance(1);
      subject = { clock, ...(await open(clock.now)) };
    });

    afterEach(() => subject?.release());

    for (const describeGroup of groups) {
      describeGroup(() => subject);
    }
  });
}

/**
 * The contract of every engine; see src/store/port/store.ts. An engine must
 * pass this and {@link describeStoreWide}.
 *
 * Each test uses its own tenants, so that all tests can share the data.
 */
export function describeStore(name: string, open: OpenStore): void {
  describeGroups(`the ${name} store`, open, [
    describeApplications,
    describeKeys,
    describeLastUsed,
    describeLists,
    describeSearch,
    describeLargeRecords,
    describeSessions,
    describeSessionLists,
    describeSessionQuotas,
    describeAbortedLists,
    describeSessionRevocations,
    describeFindMany,
    describeExpiry,
    describeExternalIds,
    describeTenants,
    describeManagers,
    describeRaces,
    describeMultiProcess,
    describeChanges,
    describeEvents,
    describeLargeEvents,
    describeAuditEvents,
    describeStoredResponses,
    describeImportedKeys,
  ]);
}

/** The contract over the data of all tenants. Each test needs an empty store. */
export function describeStoreWide(name: string, openEmpty: OpenStore): void {
  describeGroups(`the ${name} store over all tenants`, openEmpty, [
    describeTotals,
    describeExpirationEvents,
    describeTransfer,
    describeImportRevocations,
    describeImportedKeyTransfer,
    describeExternalIdTransfer,
  ]);
}

import { afterEach, beforeEach, describe } from "@jest/globals";
import { createTestClock } from "../../support/clock.js";
import { describeAbortedLists } from "./aborted-lists.js";
import { describeApplications } from "./applications.js";
import { describeAuditEvents } from "./audit-events.js";
import { describeChanges } from "./changes.js";
import { describeEvents } from "./events.js";
import { describeExpirationEvents } from "./expiration-events.js";
import { describeExpiry } from "./expiry.js";
import { describeFindMany } from "./find-many.js";
import { describeForeignKeys, describeForeignKeyTransfer } from "./foreign-keys.js";
import { describeImportRevocations } from "./import-revocations.js";
import { describeKeys } from "./keys.js";
import { describeLargeEvents } from "./large-events.js";
import { describeLastUsed } from "./last-used.js";
import { describeLists } from "./lists.js";
import { describeManagers } from "./managers.js";
import { describeMultiProcess } from "./multi-process.js";
import { describeRaces } from "./races.js";
import { describeSessionLists } from "./session-lists.js";
import { describeSessionQuotas } from "./session-quotas.js";
import { describeSessionRevocations } from "./session-revocations.js";
import { describeSessions } from "./sessions.js";
import { describeStoredResponses } from "./stored-responses.js";
import type { OpenStore, Subject } from "./subject.js";
import { describeTenants } from "./tenants.js";
import { describeTotals } from "./totals.js";
import { describeTransfer } from "./transfer.js";

/** Describes tests with a store each. */
function describeWith(
  name: string,
  open: OpenStore,
  groups: readonly ((subject: () => Subject) => void)[],
): void {
  describe(name, () => {
    // So far ahead that no engine sweeps, by a clock of its own, what a test has yet to read.
    // Tests may share a store, so the clock goes on from one test to the next.
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
 * Describes what every engine promises; see src/store/store.ts. An engine
 * passes this and {@link describeStoreWide}.
 *
 * Each test keeps to tenants of its own, so all may work on the same data.
 */
export function describeStore(name: string, open: OpenStore): void {
  describeWith(`the store in ${name}`, open, [
    describeApplications,
    describeKeys,
    describeLastUsed,
    describeLists,
    describeSessions,
    describeSessionLists,
    describeSessionQuotas,
    describeAbortedLists,
    describeSessionRevocations,
    describeFindMany,
    describeExpiry,
    describeTenants,
    describeManagers,
    describeRaces,
    describeMultiProcess,
    describeChanges,
    describeEvents,
    describeLargeEvents,
    describeAuditEvents,
    describeStoredResponses,
    describeForeignKeys,
  ]);
}

/** Describes what an engine promises of all data that it holds: each test needs a store that is empty. */
export function describeStoreWide(name: string, openEmpty: OpenStore): void {
  describeWith(`all data of the ${name} store`, openEmpty, [
    describeTotals,
    describeExpirationEvents,
    describeTransfer,
    describeImportRevocations,
    describeForeignKeyTransfer,
  ]);
}

import { afterEach, beforeEach, describe } from "@jest/globals";
import { createTestClock } from "../../support/clock.js";
import { describeAbandonedLists } from "./abandoned-lists.js";
import { describeApplications } from "./applications.js";
import { describeTrails } from "./audit-events.js";
import { describeChanges } from "./changes.js";
import { describeEvents } from "./events.js";
import { describeEnds } from "./expirations.js";
import { describeExpiry } from "./expiry.js";
import { describeForeignKeys, describeMovedForeignKeys } from "./foreign-keys.js";
import { describeImportEnds } from "./import-revocations.js";
import { describeKeys } from "./keys.js";
import { describeLargeEvents } from "./large-events.js";
import { describeLists } from "./lists.js";
import { describeManagers } from "./managers.js";
import { describeMany } from "./many.js";
import { describeRaces } from "./races.js";
import { describeAnswers } from "./responses.js";
import { describeRevoking } from "./revoking.js";
import { describeSessionLists } from "./session-lists.js";
import { describeSessionQuotas } from "./session-quotas.js";
import { describeSessions } from "./sessions.js";
import { describeSharing } from "./sharing.js";
import type { OpenStore, Subject } from "./subject.js";
import { describeTenants } from "./tenants.js";
import { describeTotals } from "./totals.js";
import { describeTransfer } from "./transfer.js";
import { describeUses } from "./uses.js";

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
 * passes this and {@link describeWholeStore}.
 *
 * Each test keeps to tenants of its own, so all may work on the same data.
 */
export function describeStore(name: string, open: OpenStore): void {
  describeWith(`the store in ${name}`, open, [
    describeApplications,
    describeKeys,
    describeUses,
    describeLists,
    describeSessions,
    describeSessionLists,
    describeSessionQuotas,
    describeAbandonedLists,
    describeRevoking,
    describeMany,
    describeExpiry,
    describeTenants,
    describeManagers,
    describeRaces,
    describeSharing,
    describeChanges,
    describeEvents,
    describeLargeEvents,
    describeTrails,
    describeAnswers,
    describeForeignKeys,
  ]);
}

/** Describes what an engine promises of all data that it holds: each test needs a store that is empty. */
export function describeWholeStore(name: string, openEmpty: OpenStore): void {
  describeWith(`all data of the ${name} store`, openEmpty, [
    describeTotals,
    describeEnds,
    describeTransfer,
    describeImportEnds,
    describeMovedForeignKeys,
  ]);
}

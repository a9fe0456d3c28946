import { afterEach, beforeEach, describe } from "@jest/globals";
import type { Clock, Store } from "../src/store/port/store.js";
import { describeAbandonedLists } from "./store-contract/abandoned-lists.js";
import { describeAnswers } from "./store-contract/answers.js";
import { describeApplications } from "./store-contract/applications.js";
import { describeChanges } from "./store-contract/changes.js";
import { describeEnds } from "./store-contract/ends.js";
import { describeEvents } from "./store-contract/events.js";
import { describeExpiry } from "./store-contract/expiry.js";
import { describeForeignKeys, describeMovedForeignKeys } from "./store-contract/foreign-keys.js";
import { describeImportEnds } from "./store-contract/import-ends.js";
import { describeKeys } from "./store-contract/keys.js";
import { describeLargeEvents } from "./store-contract/large-events.js";
import { describeLists } from "./store-contract/lists.js";
import { describeManagers } from "./store-contract/managers.js";
import { describeMany } from "./store-contract/many.js";
import { describeRaces } from "./store-contract/races.js";
import { describeRevoking } from "./store-contract/revoking.js";
import { describeSessionLists } from "./store-contract/session-lists.js";
import { describeSessionQuotas } from "./store-contract/session-quotas.js";
import { describeSessions } from "./store-contract/sessions.js";
import { describeSharing } from "./store-contract/sharing.js";
import { describeTenants } from "./store-contract/tenants.js";
import { describeTotals } from "./store-contract/totals.js";
import { describeTrails } from "./store-contract/trails.js";
import { describeTransfer } from "./store-contract/transfer.js";
import { describeUses } from "./store-contract/uses.js";
import { createTestClock, type TestClock } from "./support/clock.js";

/** An open store, for one test. */
export interface TestStore {
  readonly store: Store;
  /** Another handle on the same data, as another process has one. Tests may share it. */
  another(): Promise<Store>;
  /** Opens the same data once more, for this test alone. */
  reopen(): Promise<Store>;
  /** Sweeps from now on. For an engine that reports an expiry only when it sweeps, and does not sweep in other tests. */
  sweep?(): Promise<Store>;
  /** Closes what was opened for this test alone. */
  release(): Promise<void>;
}

/** What a test of the contract works on. */
export interface Subject extends TestStore {
  readonly clock: TestClock;
}

/** Opens a store for a test, always by the same clock. */
export type OpenStore = (clock: Clock) => Promise<TestStore>;

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
  describeWith(`all that the store in ${name} holds`, openEmpty, [
    describeTotals,
    describeEnds,
    describeTransfer,
    describeImportEnds,
    describeMovedForeignKeys,
  ]);
}

import { afterEach, beforeEach, describe } from "@jest/globals";
import type { Clock, Store } from "../src/store/store.js";
import { describeAnswers } from "./store-contract/answers.js";
import { describeApplications } from "./store-contract/applications.js";
import { describeChanges } from "./store-contract/changes.js";
import { describeEnds } from "./store-contract/ends.js";
import { describeEvents } from "./store-contract/events.js";
import { describeExpiry } from "./store-contract/expiry.js";
import { describeForeignKeys } from "./store-contract/foreign-keys.js";
import { describeKeys } from "./store-contract/keys.js";
import { describeLargeEvents } from "./store-contract/large-events.js";
import { describeLists } from "./store-contract/lists.js";
import { describeMany } from "./store-contract/many.js";
import { describeRaces } from "./store-contract/races.js";
import { describeRevoking } from "./store-contract/revoking.js";
import { describeSessionLists } from "./store-contract/session-lists.js";
import { describeSessions } from "./store-contract/sessions.js";
import { describeSharing } from "./store-contract/sharing.js";
import { describeTenants } from "./store-contract/tenants.js";
import { describeTrails } from "./store-contract/trails.js";
import { describeTransfer } from "./store-contract/transfer.js";
import { describeUses } from "./store-contract/uses.js";
import { createTestClock, type TestClock } from "./support/clock.js";

/** A store on data of its own, empty at first. */
export interface TestStore {
  readonly store: Store;
  /** Opens the same data once more, as another process would. */
  another(): Promise<Store>;
  /** Sweeps from now on; of an engine that tells an expiry no sooner, and whose tests do not sweep else. */
  sweep?(): Promise<Store>;
  /** Closes all that was opened, and removes the data. */
  destroy(): Promise<void>;
}

/** What a test of the contract works on. */
export interface Subject extends TestStore {
  readonly clock: TestClock;
}

/** Describes what every engine promises; see src/store/store.ts. An engine passes it whole. */
export function describeStore(name: string, open: (clock: Clock) => Promise<TestStore>): void {
  describe(`the store in ${name}`, () => {
    let subject: Subject;

    beforeEach(async () => {
      // So far ahead that no engine sweeps, by a clock of its own, what a test has yet to read.
      const clock = createTestClock(Date.UTC(2100, 0));
      subject = { clock, ...(await open(clock.now)) };
    });

    afterEach(() => subject.destroy());

    describeApplications(() => subject);
    describeKeys(() => subject);
    describeUses(() => subject);
    describeLists(() => subject);
    describeSessions(() => subject);
    describeSessionLists(() => subject);
    describeRevoking(() => subject);
    describeMany(() => subject);
    describeExpiry(() => subject);
    describeTenants(() => subject);
    describeRaces(() => subject);
    describeSharing(() => subject);
    describeChanges(() => subject);
    describeEvents(() => subject);
    describeLargeEvents(() => subject);
    describeTrails(() => subject);
    describeAnswers(() => subject);
    describeEnds(() => subject);
    describeTransfer(() => subject);
    describeForeignKeys(() => subject);
  });
}

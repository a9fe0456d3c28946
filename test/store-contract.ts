import { afterEach, beforeEach, describe } from "@jest/globals";
import type { Clock, Store } from "../src/store/store.js";
import { describeApplications } from "./store-contract/applications.js";
import { describeChanges } from "./store-contract/changes.js";
import { describeExpiry } from "./store-contract/expiry.js";
import { describeLists } from "./store-contract/lists.js";
import { describeMany } from "./store-contract/many.js";
import { describeRaces } from "./store-contract/races.js";
import { describeSessions } from "./store-contract/sessions.js";
import { describeSharing } from "./store-contract/sharing.js";
import { describeTenants } from "./store-contract/tenants.js";
import { createTestClock, type TestClock } from "./support/clock.js";

/** A store on data of its own, empty at first. */
export interface TestStore {
  readonly store: Store;
  /** Opens the same data once more, as another process would. */
  another(): Promise<Store>;
  /** Sweeps from now on; of an engine that tells an expiry no sooner, and whose tests do not sweep else. */
  sweep?(): Promise<unknown>;
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
    describeLists(() => subject);
    describeSessions(() => subject);
    describeMany(() => subject);
    describeExpiry(() => subject);
    describeTenants(() => subject);
    describeRaces(() => subject);
    describeSharing(() => subject);
    describeChanges(() => subject);
  });
}

import type { Clock, Store } from "../../../src/store/port/store.js";
import type { TestClock } from "../../support/clock.js";

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

import type { Clock } from "../../../src/store/port/store.js";
import type { TestClock } from "../../support/clock.js";
import type { OperableStore } from "../../support/store/operations.js";

/** An open store, for one test. */
export interface TestStore {
  readonly store: OperableStore;
  /** Another handle on the same data, like that of another process. Tests may share it. */
  another(): Promise<OperableStore>;
  /** Opens the same data again, for this test only. */
  reopen(): Promise<OperableStore>;
  /** Starts sweeping, for an engine that reports an expiry only when it sweeps. */
  sweep?(): Promise<OperableStore>;
  /** Closes the stores that were opened for this test only. */
  release(): Promise<void>;
}

/** The store under test, and its clock. */
export interface Subject extends TestStore {
  readonly clock: TestClock;
}

/** Opens a store for a test. All calls get the same clock. */
export type OpenStore = (clock: Clock) => Promise<TestStore>;

import { describeBatch } from "./access-batch.js";
import { describeAskers } from "./access-callers.js";
import { describeDecisions } from "./access-decisions.js";
import { describeDenials } from "./access-denials.js";
import { describeSelf } from "./access-self.js";
import type { ApiSubject } from "./subject.js";

/** What keys may do, and why. */
export function describeAccess(subject: ApiSubject): void {
  describeDecisions(subject);
  describeDenials(subject);
  describeAskers(subject);
  describeBatch(subject);
  describeSelf(subject);
}

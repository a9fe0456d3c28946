import { describeChanging } from "./applications-change.js";
import { describeCreating } from "./applications-create.js";
import { describeListing } from "./applications-list.js";
import { describeReading } from "./applications-read.js";
import { describeSearching } from "./applications-search.js";
import type { ApiSubject } from "./subject.js";

/** Applications and their keys. */
export function describeApplications(subject: ApiSubject): void {
  describeCreating(subject);
  describeListing(subject);
  describeSearching(subject);
  describeReading(subject);
  describeChanging(subject);
}

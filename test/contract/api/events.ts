import { describeTrail } from "./events-audit.js";
import { describeEventLists } from "./events-list.js";
import type { ApiSubject } from "./subject.js";

/** What happened in a tenant, as those see it who may. */
export function describeEvents(subject: ApiSubject): void {
  describeTrail(subject);
  describeEventLists(subject);
}

import type { HandlerContext } from "@connectrpc/connect";
import { checkVersion } from "./application-version.js";
import { aboutApplication, callerOf } from "./caller.js";
import { applicationNotFound } from "./errors.js";
import type { Deed, TrailOf } from "./events/trail.js";
import { checkMayAdminister } from "./grants.js";
import type { ApplicationChange, ApplicationRecord, ApplicationStore } from "./store/store.js";

interface ChangeOptions {
  readonly applications: Pick<ApplicationStore, "update">;
  readonly trailOf: TrailOf;
}

/** What a request says of the application that it is about. */
interface Subject {
  readonly id: string;
  /** The version that it must have, where that matters. */
  readonly ifMatch?: string | undefined;
}

interface Work extends Deed<ApplicationRecord> {
  /** What becomes of the application. It may be asked again, and refuse by throwing. */
  change(current: ApplicationRecord, now: number): Omit<ApplicationChange, "modifiedBy">;
}

/** Changes an application of the caller's tenant that the caller may administer, and answers it as it is then. */
export type ChangeApplication = (
  context: HandlerContext,
  subject: Subject,
  work: Work,
) => Promise<ApplicationRecord>;

export function createChangeApplication({
  applications,
  trailOf,
}: ChangeOptions): ChangeApplication {
  return async (context, subject, { change, ...deed }) => {
    const caller = callerOf(context);
    const { tenantId, id: modifiedBy } = caller.application;
    const id = aboutApplication(context, subject.id);
    const record = await applications.update(
      tenantId,
      id,
      (current, now) => {
        checkMayAdminister(caller, current);
        checkVersion(current, subject.ifMatch);
        return { ...change(current, now), modifiedBy };
      },
      trailOf(context, deed),
    );
    if (!record) {
      throw applicationNotFound(id);
    }
    return record;
  };
}

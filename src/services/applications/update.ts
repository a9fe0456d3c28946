import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { ApplicationService } from "../../../gen/latchkey/v1/application_service_pb.js";
import { aboutApplication, callerOf } from "../../auth/caller.js";
import { checkMayAdminister, type GrantGuard } from "../../auth/grants.js";
import type { Keyring } from "../../auth/keys.js";
import type { SealPlaces } from "../../auth/sealing.js";
import { applicationNotFound, versionMismatch } from "../../errors.js";
import type { ApplicationChange, ApplicationRecord } from "../../store/port/records.js";
import type { ApplicationStore, Clock, Store } from "../../store/port/store.js";
import type { AuditedChange, Audit } from "../events/audit.js";

interface ChangeOptions {
  readonly applications: Pick<ApplicationStore, "update">;
  readonly audit: Audit;
}

/** What a request says of the application that it is about. */
interface UpdateTarget {
  readonly id: string;
  /** The version that it must have, where that matters. */
  readonly ifMatch?: string | undefined;
}

interface ApplicationUpdate extends AuditedChange<ApplicationRecord> {
  /** What becomes of the application. It may be asked again, and refuse by throwing. */
  change(current: ApplicationRecord, now: number): Omit<ApplicationChange, "modifiedBy">;
}

/** Changes an application of the caller's tenant that the caller may administer, and answers it as it is then. */
export type UpdateApplication = (
  context: HandlerContext,
  subject: UpdateTarget,
  work: ApplicationUpdate,
) => Promise<ApplicationRecord>;

export function createUpdateApplication({
  applications,
  audit,
}: ChangeOptions): UpdateApplication {
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
      audit(context, deed),
    );
    if (!record) {
      throw applicationNotFound(id);
    }
    return record;
  };
}

export interface ApplicationHandlerOptions {
  readonly store: Store;
  readonly keyring: Keyring;
  readonly grantGuard: GrantGuard;
  readonly audit: Audit;
  readonly clock: Clock;
  readonly sealPlaces: SealPlaces;
}

/** What handlers that change applications need as well. */
export interface UpdateHandlerOptions extends ApplicationHandlerOptions {
  readonly updateApplication: UpdateApplication;
}

export type ApplicationHandlers = ServiceImpl<typeof ApplicationService>;

/** The version of an application as callers see it, who only compare it. */
export function versionOf({ version }: ApplicationRecord): string {
  return String(version);
}

/** Stands for every version, as in HTTP. */
const any = "*";

/** Refuses to touch an application that is not at the version that the caller named, if it named one. */
export function checkVersion(current: ApplicationRecord, ifMatch: string | undefined): void {
  const version = versionOf(current);
  if (ifMatch !== undefined && ifMatch !== any && ifMatch !== version) {
    throw versionMismatch(version);
  }
}

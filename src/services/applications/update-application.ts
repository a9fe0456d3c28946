import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { ApplicationService } from "../../../gen/latchkey/v1/application_service_pb.js";
import { callerOf } from "../../auth/caller.js";
import type { CursorSealerFactory } from "../../auth/cursor-sealing.js";
import { checkMayAdminister, type GrantGuard } from "../../auth/grants.js";
import type { Keyring } from "../../auth/keys.js";
import { applicationNotFound, versionMismatch } from "../../errors.js";
import type { ApplicationStore } from "../../store/port/applications.js";
import type { ApplicationChange, ApplicationRecord } from "../../store/port/records.js";
import type { Clock, Store } from "../../store/port/store.js";
import { type Audit, type AuditedChange, withDenialTarget } from "../events/audit.js";

interface ChangeOptions {
  readonly applications: Pick<ApplicationStore, "update">;
  readonly audit: Audit;
}

interface UpdateTarget {
  readonly id: string;
  /** The expected version, if the caller sent one. */
  readonly ifMatch?: string | undefined;
}

export interface ApplicationUpdate extends AuditedChange<ApplicationRecord> {
  /** Returns the changed fields, or throws to refuse. May run again on a conflict. */
  change(current: ApplicationRecord, now: number): Omit<ApplicationChange, "modifiedBy">;
}

/** Updates an application of the caller's tenant that the caller may administer, and returns the new record. */
export type UpdateApplication = (
  context: HandlerContext,
  subject: UpdateTarget,
  work: ApplicationUpdate,
) => Promise<ApplicationRecord>;

export function createUpdateApplication({ applications, audit }: ChangeOptions): UpdateApplication {
  return async (context, subject, { change, ...entry }) => {
    const caller = callerOf(context);
    const { tenantId, id: modifiedBy } = caller.application;
    const id = subject.id.toLowerCase();
    const record = await applications.update(
      tenantId,
      id,
      (current, now) =>
        withDenialTarget({ applicationId: id, name: current.name }, () => {
          checkMayAdminister(caller, current);
          checkVersion(current, subject.ifMatch);
          return { ...change(current, now), modifiedBy };
        }),
      audit(context, entry),
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
  readonly createSealer: CursorSealerFactory;
}

export interface UpdateHandlerOptions extends ApplicationHandlerOptions {
  readonly updateApplication: UpdateApplication;
}

export type ApplicationHandlers = ServiceImpl<typeof ApplicationService>;

/** The opaque version of an application in the API. */
export function versionOf({ version }: ApplicationRecord): string {
  return String(version);
}

/** Matches every version, as in HTTP. */
const any = "*";

/** Throws if the application is not at the version that the caller expects. */
export function checkVersion(current: ApplicationRecord, ifMatch: string | undefined): void {
  const version = versionOf(current);
  if (ifMatch !== undefined && ifMatch !== any && ifMatch !== version) {
    throw versionMismatch(version);
  }
}

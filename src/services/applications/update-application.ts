import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { ApplicationService } from "../../../gen/latchkey/v1/application_service_pb.js";
import { assertMayAdminister } from "../../auth/grants.js";
import { callerOf } from "../../call.js";
import type { Dependencies } from "../../dependencies.js";
import { applicationNotFound, versionMismatch } from "../../errors.js";
import { RecordChanged } from "../../store/port/errors.js";
import type { ApplicationChange, ApplicationRecord } from "../../store/port/records.js";
import { type AuditedChange, withDenialTarget } from "../events/audit.js";

interface UpdateTarget {
  readonly id: string;
  /** The expected version, if the caller sent one. */
  readonly ifMatch?: string | undefined;
}

/** The fields that an update changes. */
export type ChangedFields = Omit<ApplicationChange, "modifiedBy">;

export interface ApplicationUpdate extends AuditedChange<ApplicationRecord> {
  /** Whether the response contains a new key. */
  readonly givesKey?: boolean;
  /**
   * Returns the changed fields, or `undefined` if nothing changes, or throws to refuse.
   * May run again on a conflict.
   */
  change(current: ApplicationRecord, now: number): ChangedFields | undefined;
}

/**
 * Updates an application of the caller's tenant that the caller may administer,
 * within what it may grant, and returns the new record.
 */
export type UpdateApplication = (
  context: HandlerContext,
  subject: UpdateTarget,
  work: ApplicationUpdate,
) => Promise<ApplicationRecord>;

/** How often a comparison of grants is repeated outside the transaction if the application changes. */
const maxComparisons = 5;

export function createUpdateApplication({
  store,
  grantGuard,
  audit,
}: Pick<Dependencies, "store" | "grantGuard" | "audit">): UpdateApplication {
  const { applications } = store;

  return async (context, subject, { change, givesKey, ...entry }) => {
    const caller = callerOf(context);
    const { tenantId, id: modifiedBy } = caller.application;
    const id = subject.id.toLowerCase();
    const changeCheck = grantGuard.createChangeCheck(caller);
    // What only revokes gives nothing, so there are no grants to compare.
    const mayGive = givesKey === true || !entry.revokes;

    function changeOf(current: ApplicationRecord, now: number): ApplicationChange | undefined {
      return withDenialTarget({ applicationId: id, name: current.name }, () => {
        assertMayAdminister(caller, current);
        assertVersion(current, subject.ifMatch);
        const changed = change(current, now);
        if (!changed) {
          return undefined;
        }
        changeCheck.assertAllowed(current, { ...changed, givesKey });
        return { ...changed, modifiedBy };
      });
    }

    /** Compares grants outside the transaction, which would block other writes. Returns the version of the target. */
    async function compareAhead(): Promise<number | undefined> {
      const current = await applications.find(id);
      if (current?.tenantId !== tenantId) {
        return undefined;
      }
      const now = await store.now();
      try {
        changeOf(current, now);
      } catch {
        // The transaction decides again, and reports the error.
      }
      return current.version;
    }

    async function update(attempt: number): Promise<ApplicationRecord | undefined> {
      const isCompared = mayGive && changeCheck.comparesGrants;
      const version = isCompared ? await compareAhead() : undefined;
      const updating = applications.update(
        tenantId,
        id,
        (current, now) => {
          if (version !== undefined && current.version !== version && attempt < maxComparisons) {
            throw new RecordChanged("The application has changed since its grants were compared.");
          }
          return changeOf(current, now);
        },
        audit(context, entry),
      );
      return updating.catch((error) => {
        if (error instanceof RecordChanged) {
          return update(attempt + 1);
        }
        throw error;
      });
    }

    const record = await update(1);
    if (!record) {
      throw applicationNotFound(id);
    }
    return record;
  };
}

export type ApplicationHandlers = ServiceImpl<typeof ApplicationService>;

/** The opaque version of an application in the API. */
export function versionOf({ version }: ApplicationRecord): string {
  return String(version);
}

/** Matches every version, as in HTTP. */
const any = "*";

/** Throws if the application is not at the version that the caller expects. */
export function assertVersion(current: ApplicationRecord, ifMatch: string | undefined): void {
  const version = versionOf(current);
  if (ifMatch !== undefined && ifMatch !== any && ifMatch !== version) {
    throw versionMismatch(version);
  }
}

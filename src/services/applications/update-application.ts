import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { ApplicationService } from "../../../gen/latchkey/v1/application_service_pb.js";
import { assertMayAdminister } from "../../auth/grants.js";
import { callerOf } from "../../call.js";
import type { Dependencies } from "../../dependencies.js";
import { applicationNotFound, versionMismatch } from "../../errors.js";
import {
  type ApplicationChange,
  type ApplicationRecord,
  changedApplication,
} from "../../store/port/records.js";
import { type ChangeEvent, principalOf } from "../commit.js";

interface UpdateTarget {
  readonly id: string;
  /** The expected version, if the caller sent one. */
  readonly ifMatch?: string | undefined;
}

/** The fields that an update changes. */
export type ChangedFields = Omit<ApplicationChange, "modifiedBy">;

export interface ApplicationUpdate<R extends object> {
  /** Whether it only removes access. */
  readonly revokes?: boolean;
  /** Whether the response contains a new key. */
  readonly givesKey?: boolean;
  /** Returns the changed fields, or `undefined` if nothing changes. Throws to refuse. */
  change(current: ApplicationRecord, now: number): ChangedFields | undefined;
  /** The event, whose target is the application. */
  event(after: ApplicationRecord, before: ApplicationRecord): UpdateEvent;
  reply(after: ApplicationRecord): R;
}

interface UpdateEvent extends Omit<ChangeEvent, "target"> {
  /** The key that the change is about. */
  readonly keyId?: string;
}

/** Updates an application of the caller's tenant that the caller may administer, within what it may grant. */
export type UpdateApplication = <R extends object>(
  context: HandlerContext,
  target: UpdateTarget,
  update: ApplicationUpdate<R>,
) => Promise<R>;

export function createUpdateApplication({
  commit,
  grantGuard,
}: Pick<Dependencies, "commit" | "grantGuard">): UpdateApplication {
  return (context, { id: givenId, ifMatch }, { change, event, reply, ...update }) => {
    const caller = callerOf(context);
    const id = givenId.toLowerCase();
    // What only revokes gives nothing, so there are no grants to compare.
    const mayGive = update.givesKey === true || !update.revokes;

    return commit(context, {
      target: { kind: "application", id },
      revokes: update.revokes,
      isCostly: mayGive && grantGuard.comparesGrants(caller),
      decide({ target: current }, now) {
        if (!current) {
          throw applicationNotFound(id);
        }
        assertMayAdminister(caller, current);
        assertVersion(current, ifMatch);
        const changed = change(current, now);
        if (!changed) {
          return { reply: reply(current) };
        }
        grantGuard.assertMayChange(caller, current, { ...changed, givesKey: update.givesKey });
        const modifiedBy = caller.application.id;
        const after = changedApplication(current, { ...changed, modifiedBy }, now);
        const { keyId, ...details } = event(after, current);
        return {
          put: after,
          event: { ...details, target: { ...principalOf(after), keyId } },
          reply: reply(after),
        };
      },
    });
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

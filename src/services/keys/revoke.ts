import { KeyService } from "../../../gen/latchkey/v1/key_service_pb.js";
import { createFindOwner } from "../../auth/authenticate.js";
import type { Call } from "../../call.js";
import { methodName } from "../../contract/methods.js";
import type { Dependencies } from "../../dependencies.js";
import { changedApplication, type KeyRecord } from "../../store/port/records.js";
import type { Clock } from "../../store/port/store.js";
import { withoutKey } from "../applications/key-handlers.js";
import { actorOf, stateOf } from "../events/audit.js";

/** Revokes a key that a call contains. Returns whether it was valid. */
export type Revoke = (key: string, call: Call) => Promise<boolean>;

/**
 * Deletes a session, or removes a key from its application, which may be disabled. Public keys can be read by anyone,
 * so they stay valid, and the audit log records the report.
 */
export function createRevoke({
  store,
  keyring,
  addressOf,
  clock,
}: Pick<Dependencies, "store" | "keyring" | "addressOf" | "clock">): Revoke {
  const findOwner = createFindOwner(store, keyring);
  const reportOnce = createReportOnce(clock);

  return async (key, call) => {
    const owner = await findOwner(key);
    if (!owner) {
      return false;
    }
    const { application, session } = owner;
    const { tenantId, id } = application;
    const event = {
      tenantId,
      outcome: "success",
      target: actorOf(owner),
      method: methodName(call.method),
      requestId: call.requestId,
      address: addressOf(call.peer),
    } as const;
    const change = { reads: {}, revokes: true, cancellation: call.cancellation };

    if (session) {
      await store.change({
        ...change,
        target: { kind: "session", id: session.id },
        decide({ target }) {
          if (!target) {
            return { result: undefined };
          }
          // Anyone with a public key can open sessions and revoke them.
          const isRecorded = target.session.authorizedAt !== undefined;
          const before = stateOf(target.session);
          return {
            put: null,
            event: isRecorded ? { ...event, kind: "session.deleted", before } : undefined,
            result: undefined,
          };
        },
      });
      return true;
    }
    const { id: keyId } = owner.key as KeyRecord;
    if (application.type === "public") {
      const report = () => store.events.add([{ ...event, kind: "key.reported" }]);
      await (call.method === KeyService.method.revokeKey ? reportOnce(keyId, report) : report());
      return true;
    }
    await store.change({
      ...change,
      target: { kind: "application", id },
      decide({ target }, now) {
        // Another call may have revoked the key.
        const keys = target && withoutKey(target.keys, keyId, now);
        if (!keys) {
          return { result: undefined };
        }
        return {
          // The holder of a key acts as its application.
          put: changedApplication(target, { keys, modifiedBy: id }, now),
          event: { ...event, kind: "key.revoked" },
          result: undefined,
        };
      },
    });
    return true;
  };
}

/** Milliseconds between two events about the same public key by callers that nobody verified. */
const reportInterval = 60_000;

/** Bounds the memory. */
const maxReported = 10_000;

/** Reports a key, unless it was reported shortly before. */
type ReportOnce = (keyId: string, report: () => Promise<unknown>) => Promise<void>;

/** Anyone can report a public key, so repeated reports must not fill the audit log. A failed one does not count. */
function createReportOnce(clock: Clock): ReportOnce {
  const reportedAt = new Map<string, number>();
  return async (keyId, report) => {
    const now = clock();
    const last = reportedAt.get(keyId);
    if (last !== undefined && now < last + reportInterval) {
      return;
    }
    await report();
    if (reportedAt.size >= maxReported) {
      reportedAt.clear();
    }
    reportedAt.set(keyId, now);
  };
}

import type { ChangeContext } from "./operations.js";

/** A changed application or session. */
interface Changed {
  readonly id: string;
  readonly tenantId: string;
  readonly applicationId?: string;
}

/** The context of a change without preconditions, whose event has this kind. */
function auditAs(kind: string): ChangeContext<Changed> {
  return {
    eventFor: ({ id, tenantId, applicationId }) => ({
      tenantId,
      kind,
      outcome: "success",
      target:
        applicationId === undefined ? { applicationId: id } : { applicationId, sessionId: id },
    }),
  };
}

/** Contexts of changes whose event does not matter. */
export const audit = {
  created: auditAs("application.created"),
  updated: auditAs("application.updated"),
  regenerated: auditAs("key.regenerated"),
  deleted: auditAs("application.deleted"),
  authorized: auditAs("session.authorized"),
  sessionDeleted: auditAs("session.deleted"),
};

import { callerOf } from "../caller.js";
import { createChangeApplication } from "../change-application.js";
import { createCursors, defaultPageSize } from "../cursor.js";
import { sessionNotFound } from "../errors.js";
import { stateOfSession } from "../events/trail.js";
import { checkMayAdminister } from "../grants.js";
import type { SessionWithApplication } from "../store/store.js";
import type { SessionHandlerOptions, SessionHandlers } from "./handlers.js";
import { toSession } from "./to-session.js";

/** What shows sessions to operators, and ends them. */
export function createManageHandlers({
  store,
  trailOf,
  sealPlaces,
  settings,
}: Pick<SessionHandlerOptions, "store" | "trailOf" | "sealPlaces" | "settings">): Pick<
  SessionHandlers,
  "listSessions" | "getSession" | "deleteSession" | "revokeAllSessions"
> {
  const { applications, sessions } = store;
  const cursors = createCursors(sealPlaces, "sessions");
  const show = (found: SessionWithApplication) => toSession(found, settings.grantPolicy);
  const changeApplication = createChangeApplication({ applications, trailOf });
  return {
    async listSessions(request, context) {
      const { tenantId } = callerOf(context).application;
      const { applicationId, authorizedBy, state, size = defaultPageSize, start } = request;
      const query = {
        tenantId,
        applicationId: applicationId?.toLowerCase(),
        authorizedBy: authorizedBy?.toLowerCase(),
        authorized: state === undefined ? undefined : state === "authorized",
        size,
        after: start === undefined ? undefined : cursors.read(tenantId, start).after,
      };
      const { items, more } = await sessions.list(query, context.signal);
      const last = items.at(-1);
      return {
        pagination: {
          pageSize: size,
          ...(more && last && { next: cursors.encode(tenantId, { after: last.session.id }) }),
        },
        data: items.map(show),
      };
    },

    async getSession(request, context) {
      const id = request.id.toLowerCase();
      const found = await sessions.find(id);
      if (found?.session.tenantId !== callerOf(context).application.tenantId) {
        throw sessionNotFound(id);
      }
      return show(found);
    },

    async deleteSession(request, context) {
      const caller = callerOf(context);
      const id = request.id.toLowerCase();
      const wasThere = await sessions.delete(
        caller.application.tenantId,
        id,
        ({ application }) => checkMayAdminister(caller, application),
        trailOf(context, {
          kind: "session.deleted",
          target: ({ applicationId }) => ({ applicationId, sessionId: id }),
          before: stateOfSession,
          answer: () => ({}),
        }),
      );
      if (!wasThere) {
        throw sessionNotFound(id);
      }
      return {};
    },

    async revokeAllSessions(request, context) {
      await changeApplication(context, request, {
        kind: "application.sessions_revoked",
        revokes: true,
        change: ({ sessionEpoch }) => ({ sessionEpoch: sessionEpoch + 1 }),
        target: ({ id }) => ({ applicationId: id }),
        answer: () => ({}),
      });
      return {};
    },
  };
}

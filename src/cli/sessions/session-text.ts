import type { Session } from "../../../gen/latchkey/v1/session_service_pb.js";
import { rulesText } from "../apps/application-text.js";
import { type Column, detailsText, type Look } from "../table.js";
import { momentText, relativeText } from "../time-text.js";

export const sessionColumns: readonly Column<Session>[] = [
  { title: "ID", text: ({ id }) => id },
  {
    title: "STATE",
    text: ({ state }) => state,
    paint: (text, { state }, { good, warn }) => (state === "authorized" ? good : warn)(text),
  },
  { title: "ENDS", text: ({ expiresAt }) => relativeText(expiresAt) },
  { title: "OPENED", text: ({ createdAt }) => relativeText(createdAt), isExtra: true },
  { title: "APPLICATION", text: ({ applicationId }) => applicationId, isExtra: true },
  {
    title: "PERMISSIONS",
    text: ({ permissions }) => permissions.join(" "),
    shrinks: true,
    isExtra: true,
  },
];

/** All that is known of a session. */
export function sessionText(session: Session, look: Look): string {
  const facts = detailsText(
    [
      ["id", session.id],
      ["state", session.state],
      ["application", session.applicationId],
      ["permissions", session.permissions.join(" ")],
      ["opened", momentText(session.createdAt)],
      ["ends", momentText(session.expiresAt)],
      ["authorized", momentText(session.authorizedAt)],
      ["authorized by", session.authorizedBy],
      ["tenant", session.tenantId],
    ],
    look,
  );
  return facts + rulesText(session.rules, look);
}

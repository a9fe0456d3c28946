import { ListSessionsResponseSchema } from "../../../gen/latchkey/v1/session_service_pb.js";
import { findApplicationId } from "../apps/find-application.js";
import { type ListFlags, moreNote, readPages } from "../pages.js";
import { tableText } from "../table.js";
import { type CallingFlags, withClient } from "../with-client.js";
import { sessionColumns } from "./session-text.js";

interface Flags extends CallingFlags, ListFlags {
  readonly application?: string;
  readonly authorizedBy?: string;
  readonly state?: string;
}

export async function listSessions(flags: Flags): Promise<void> {
  const { application, authorizedBy, state } = flags;
  await withClient(flags, async (calling) => {
    const { client, call, output } = calling;
    const search = {
      ...(application && { applicationId: await findApplicationId(calling, application) }),
      ...(authorizedBy && { authorizedBy: await findApplicationId(calling, authorizedBy) }),
      ...(state && { state }),
    };
    const found = await readPages(flags, (place) =>
      client.sessions.listSessions({ ...search, ...place }, call),
    );
    output.show(ListSessionsResponseSchema, found, (look) =>
      tableText(sessionColumns, found.data, look),
    );
    output.note(moreNote(found));
  });
}

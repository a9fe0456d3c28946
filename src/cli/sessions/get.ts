import { SessionSchema } from "../../../gen/latchkey/v1/session_service_pb.js";
import { type CallingFlags, withClient } from "../with-client.js";
import { sessionText } from "./session-text.js";

export async function getSession(id: string, flags: CallingFlags): Promise<void> {
  await withClient(flags, async ({ client, call, output }) => {
    const session = await client.sessions.getSession({ id }, call);
    output.show(SessionSchema, session, (look) => sessionText(session, look));
  });
}

import { CreateSessionResponseSchema } from "../../../gen/latchkey/v1/session_service_pb.js";
import { detailsText } from "../table.js";
import { momentText } from "../time-text.js";
import { type CallingFlags, withClient } from "../with-client.js";

export async function openSession(flags: CallingFlags): Promise<void> {
  await withClient(flags, async ({ client, call, output }) => {
    const opened = await client.sessions.createSession({}, call);
    const { id, sessionKey, nonce, expiresAt } = opened;
    output.show(CreateSessionResponseSchema, opened, (look) =>
      detailsText(
        [
          ["session", id],
          ["session key", sessionKey],
          ["nonce", nonce],
          ["ends", momentText(expiresAt)],
        ],
        look,
      ),
    );
    output.note("The key works once the nonce is used: latchkey sessions authorize");
  });
}

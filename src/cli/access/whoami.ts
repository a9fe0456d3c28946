import {
  type WhoAmIResponse,
  WhoAmIResponseSchema,
} from "../../../gen/latchkey/v1/access_service_pb.js";
import { rulesText } from "../apps/application-text.js";
import { detailsText, type Look } from "../table.js";
import { momentText } from "../time-text.js";
import { type CallingFlags, withClient } from "../with-client.js";

export async function whoAmI(flags: CallingFlags): Promise<void> {
  await withClient(flags, async ({ client, call, output, connection }) => {
    const self = await client.access.whoAmI({}, call);
    output.show(WhoAmIResponseSchema, self, (look) => selfText(self, connection.url, look));
  });
}

/** Whose key it is and what it may do. */
export function selfText(self: WhoAmIResponse, url: string, look: Look): string {
  const facts = detailsText(
    [
      ["service", url],
      ["kind", self.kind],
      ["name", self.name],
      ["type", self.type],
      ["application", self.applicationId],
      ["session", self.sessionId],
      ["tenant", self.tenantId],
      ["authorized", self.authorized ? "yes" : "not yet"],
      ["authorized by", self.authorizedBy],
      ["permissions", self.permissions.join(" ")],
      ["origins", self.allowedOrigins.join(" ")],
      ["networks", self.allowedCidrs.join(" ")],
      ["expires", momentText(self.expiresAt)],
    ],
    look,
  );
  return facts + rulesText(self.rules, look) + authorizerText(self, look);
}

/** What limits a session to what its authorizer may do. */
function authorizerText({ authorizer }: WhoAmIResponse, look: Look): string {
  if (!authorizer) {
    return "";
  }
  const facts = detailsText(
    [
      ["permissions", authorizer.permissions.join(" ")],
      ["missing", authorizer.missingPermissions.join(" ")],
    ],
    look,
  );
  return `\nlimited to what its authorizer is granted now\n${facts}${rulesText(authorizer.rules, look)}`;
}

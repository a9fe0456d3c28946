import {
  type CheckAccessResponse,
  CheckAccessResponseSchema,
  type GrantDecision,
  type KnownPermission,
  ListPermissionsResponseSchema,
  type WhoAmIResponse,
  WhoAmIResponseSchema,
} from "../../../gen/latchkey/v1/access_service_pb.js";
import { rulesText } from "../apps/application.js";
import { type CallingFlags, withClient } from "../client.js";
import { exitCodes } from "../errors.js";
import { readSecret } from "../prompt.js";
import { type Column, detailsText, type Look, momentText, tableText } from "../table.js";

interface Flags extends CallingFlags {
  readonly subjectFile?: string;
  readonly id?: string;
  readonly container?: string;
  readonly origin?: string;
  readonly address?: string;
}

/** Asks whether a key may do something; the exit code tells it too. */
export async function checkAccess(permission: string, flags: Flags): Promise<void> {
  const { id, container, origin, address } = flags;
  const token =
    id === undefined && container === undefined
      ? {}
      : { token: { ...(id && { id }), ...(container && { container }) } };
  await withClient(flags, async ({ client, call, output }) => {
    const key = await readSecret({ noun: "the key to check", file: flags.subjectFile });
    const place = { ...(origin && { origin }), ...(address && { address }) };
    const answer = await client.access.checkAccess({ key, permission, ...token, ...place }, call);
    output.show(CheckAccessResponseSchema, answer, (look) => answerText(answer, look));
    process.exitCode = exitCodes[answer.allowed ? "done" : "denied"].code;
  });
}

function answerText(answer: CheckAccessResponse, look: Look): string {
  const { good, bad } = look.colours;
  const facts = detailsText(
    [
      ["transform", answer.transform],
      ["decided by", decidedText(answer)],
      ["reason", answer.reason],
      ["detail", answer.detail],
      ["application", answer.applicationId],
      ["session", answer.sessionId],
      ["authorized by", answer.authorizedBy],
      ["by the session", sideText(answer.bySession)],
      ["by its authorizer", sideText(answer.byAuthorizer)],
      ["limited by", answer.limitedBy],
      ["expires", momentText(answer.expiresAt)],
    ],
    look,
  );
  return `${answer.allowed ? good("allowed") : bad("denied")}\n${facts}`;
}

/** What the grants of a session, or those of its authorizer, say. */
function sideText(side: GrantDecision | undefined): string | undefined {
  return side?.allowed ? `${side.transform}: ${decidedText(side)}` : side?.reason;
}

function decidedText({ decidedBy }: Pick<GrantDecision, "decidedBy">): string | undefined {
  if (decidedBy?.rule) {
    const { place, priority, description } = decidedBy.rule;
    return `rules[${place}], priority ${priority}${description ? `: ${description}` : ""}`;
  }
  return decidedBy?.permission && `the permission ${decidedBy.permission}, on everything`;
}

const columns: readonly Column<KnownPermission>[] = [
  { title: "NAME", text: ({ name }) => name },
  { title: "ALLOWS", text: ({ allows }) => allows, shrinks: true },
  { title: "TYPES", text: ({ types }) => types.join(" "), isExtra: true },
];

export async function listPermissions(
  flags: CallingFlags & { readonly type?: string },
): Promise<void> {
  const { type } = flags;
  await withClient(flags, async ({ client, call, output }) => {
    const known = await client.access.listPermissions(type ? { type } : {}, call);
    output.show(ListPermissionsResponseSchema, known, (look) =>
      tableText(columns, known.data, look),
    );
  });
}

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

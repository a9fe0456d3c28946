import type { Command } from "commander";
import {
  type CheckAccessResponse,
  CheckAccessResponseSchema,
  type GrantDecision,
  type KnownPermission,
  ListPermissionsRequestSchema,
  ListPermissionsResponseSchema,
  type WhoAmIResponse,
  WhoAmIResponseSchema,
} from "../../gen/latchkey/v1/access_service_pb.js";
import { choicesOf } from "../contract/fields.js";
import { type NameOf, nameDetail, readNames } from "./apps/find-application.js";
import { type ClientFlags, withClient } from "./client.js";
import { exitCodes } from "./errors.js";
import { formatRules } from "./grants.js";
import { maxPageSize, readPages, showList } from "./list.js";
import { addExample, choice, fileOption, withConnection, withListAction } from "./options.js";
import { type Display, formatTime } from "./output.js";
import { readSecret } from "./prompt.js";
import { formatDetails } from "./table.js";

export function addAccessCommands(program: Command): void {
  const check = program
    .command("check")
    .summary("check whether a key has a permission, and why")
    .description(
      "check whether a key has a permission, and why; exits with 0 if allowed, 3 if denied",
    )
    .argument("<permission>", "permission to check, for example token:read")
    .addOption(
      fileOption(
        "--principal-file <file>",
        "file with the key to check, - for stdin (default: prompt or stdin)",
      ),
    )
    .option(
      "--container <path>",
      "container of the token, a data item in the vault of your service",
    )
    .option("--id <id>", "id of the token")
    .option("--origin <origin>", "Origin header of the request that used the key")
    .option("--address <address>", "IP address of the client that used the key")
    .action(checkAccess);
  addExample(
    withConnection(check),
    "latchkey check token:read --container /pci/ --principal-file shop.key",
    'echo "$KEY" | latchkey check token:use && echo allowed',
  );

  const whoami = program
    .command("whoami")
    .description("show the owner of your key and its permissions")
    .action(whoAmI);
  addExample(withConnection(whoami), "latchkey whoami --profile staging");

  const permissions = program
    .command("permissions")
    .description("list the known permissions")
    .addOption(
      choice(
        "--type <type>",
        "only permissions for this type of application",
        choicesOf(ListPermissionsRequestSchema.field.type),
      ),
    );
  withListAction(permissions, listPermissions);
  addExample(withConnection(permissions), "latchkey permissions --type public");
}

interface CheckFlags extends ClientFlags {
  readonly principalFile?: string;
  readonly id?: string;
  readonly container?: string;
  readonly origin?: string;
  readonly address?: string;
}

/** Checks whether a key has a permission. The exit code is part of the result. */
async function checkAccess(permission: string, flags: CheckFlags): Promise<void> {
  const { id, container, origin, address } = flags;
  const token =
    id === undefined && container === undefined
      ? {}
      : { token: { ...(id && { id }), ...(container && { container }) } };
  await withClient(flags, async (context) => {
    const { client, call, output } = context;
    const key = await readSecret({ noun: "key to check", file: flags.principalFile });
    const usedFrom = { ...(origin && { origin }), ...(address && { address }) };
    const principal = { case: "key", value: key } as const;
    const request = { principal, permission, ...token, ...usedFrom };
    const decision = await client.access.checkAccess(request, call);
    const nameOf = await readNames(context, [decision.applicationId, decision.authorizedBy]);
    output.show(CheckAccessResponseSchema, decision, (display) =>
      formatDecision(decision, nameOf, display),
    );
    process.exitCode = exitCodes[decision.allowed ? "success" : "denied"].code;
  });
}

function formatDecision(decision: CheckAccessResponse, nameOf: NameOf, display: Display): string {
  const { good, bad } = display.colors;
  const details = formatDetails(
    [
      ["transform", decision.transform],
      ["decided by", formatGrant(decision)],
      ["reason", decision.reason],
      ["detail", decision.detail],
      nameDetail("application", decision.applicationId, nameOf),
      ["session", decision.sessionId],
      nameDetail("authorized by", decision.authorizedBy, nameOf),
      ["by the session", formatGrantDecision(decision.bySession)],
      ["by its authorizer", formatGrantDecision(decision.byAuthorizer)],
      ["limited by", decision.limitedBy],
      ["expires", formatTime(decision.expiresAt)],
    ],
    display,
  );
  return `${decision.allowed ? good("allowed") : bad("denied")}\n${details}`;
}

/** The decision by the grants of a session, or by those of its authorizer. */
function formatGrantDecision(decision: GrantDecision | undefined): string | undefined {
  return decision?.allowed ? `${decision.transform}: ${formatGrant(decision)}` : decision?.reason;
}

function formatGrant({ decidedBy }: Pick<GrantDecision, "decidedBy">): string | undefined {
  if (decidedBy?.rule) {
    const { index, priority, description } = decidedBy.rule;
    return `rules[${index}], priority ${priority}${description ? `: ${description}` : ""}`;
  }
  return decidedBy?.permission && `permission ${decidedBy.permission}, granted directly`;
}

async function listPermissions(flags: ClientFlags & { readonly type?: string }): Promise<void> {
  const { type } = flags;
  await withClient(flags, async ({ client, call, output }) => {
    const known = await readPages({ limit: maxPageSize, all: true }, (page) =>
      client.access.listPermissions({ ...page, ...(type && { type }) }, call),
    );
    showList(output, ListPermissionsResponseSchema, known, {
      noun: "permission",
      format: formatPermissions,
    });
  });
}

function formatPermissions(known: readonly KnownPermission[], display: Display): string {
  return formatDetails(
    known.map(({ name, allows }) => [name, allows]),
    display,
  );
}

async function whoAmI(flags: ClientFlags): Promise<void> {
  await withClient(flags, async (context) => {
    const { client, call, output, connection } = context;
    const self = await client.access.whoAmI({}, call);
    const nameOf = await readNames(context, [self.authorizedBy]);
    output.show(WhoAmIResponseSchema, self, (display) =>
      formatIdentity(self, connection.url, display, nameOf),
    );
  });
}

/** The owner of a key and its grants. */
export function formatIdentity(
  self: WhoAmIResponse,
  url: string,
  display: Display,
  nameOf: NameOf = () => undefined,
): string {
  const details = formatDetails(
    [
      ["service", url],
      ["application", self.name, self.applicationId],
      ["type", self.type],
      ["session", self.sessionId],
      ["tenant", self.tenantId],
      ["authorized", self.sessionId && (self.authorized ? "yes" : "not yet")],
      nameDetail("authorized by", self.authorizedBy, nameOf),
      ["permissions", self.permissions.join(" ")],
      ["origins", self.allowedOrigins.join(" ")],
      ["networks", self.allowedCidrs.join(" ")],
      ["expires", formatTime(self.expiresAt)],
    ],
    display,
  );
  return details + formatRules(self.rules, display) + formatAuthorizer(self, display);
}

/** The grants of the authorizer, which limit those of the session. */
function formatAuthorizer({ authorizer }: WhoAmIResponse, display: Display): string {
  if (!authorizer) {
    return "";
  }
  const details = formatDetails(
    [
      ["permissions", authorizer.permissions.join(" ")],
      ["missing", authorizer.missingPermissions.join(" ")],
    ],
    display,
  );
  return `\nlimited by the current grants of its authorizer\n${details}${formatRules(authorizer.rules, display)}`;
}

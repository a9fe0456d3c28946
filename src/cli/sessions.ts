import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { Command } from "commander";
import {
  CreateSessionResponseSchema,
  ListSessionsRequestSchema,
  ListSessionsResponseSchema,
  RevokeAllSessionsResponseSchema,
  type Session,
  SessionSchema,
} from "../../gen/latchkey/v1/session_service_pb.js";
import { choicesOf } from "../contract/fields.js";
import { escapeUnprintable } from "../lib/terminal.js";
import {
  applicationNaming,
  findApplication,
  findApplicationId,
  type NameOf,
  nameDetail,
  readNames,
} from "./apps/find-application.js";
import { type ClientContext, type ClientFlags, withClient } from "./client.js";
import { CommandError, latchkey } from "./errors.js";
import { formatRules, grantOptions, readGrants } from "./grants.js";
import { type ListFlags, readPages, showList } from "./list.js";
import { parseFutureTime, parseId } from "./option-values.js";
import { addExample, choice, fileOption, withConnection, withLimit, yesOption } from "./options.js";
import { type Display, formatRelativeTime, formatTime } from "./output.js";
import { type ConfirmFlags, confirm, readSecret } from "./prompt.js";
import { requireReader } from "./stdio.js";
import { type Column, formatDetails, formatSecret, formatTable } from "./table.js";

const applicationOption = [
  "--application <application>",
  `sessions opened by this application: ${applicationNaming}`,
] as const;

export function addSessionCommands(program: Command): void {
  const sessions = program
    .command("sessions")
    .helpCommand(false)
    .description("open, authorize, list and revoke sessions");
  addOpenAndAuthorize(sessions);
  addManagement(sessions);
}

function addOpenAndAuthorize(sessions: Command): void {
  const open = sessions
    .command("open")
    .summary("open a session, as a browser does")
    .description("open a session with the key of a public application, as a browser does")
    .action(openSession);
  addExample(withConnection(open), "latchkey sessions open --key-file browser.key --json");

  const authorize = sessions
    .command("authorize")
    .summary("authorize a session, as a backend does")
    .description("authorize a session with the key of a private application, as a backend does")
    .addOption(
      fileOption(
        "--nonce-file <file>",
        "file with the nonce, - for stdin (default: prompt or stdin)",
      ),
    );
  grantOptions(authorize, "permission to grant directly")
    .option("--expires <time>", "when it expires; 10m means in ten minutes", parseFutureTime)
    .action(authorizeSession);
  addExample(
    withConnection(authorize),
    "latchkey sessions authorize --permission token:read --expires 10m",
    "latchkey sessions authorize --nonce-file nonce.txt --rules rules.json",
  );
}

function addManagement(sessions: Command): void {
  const list = sessions
    .command("ls")
    .alias("list")
    .description("list open sessions, newest first")
    .option(...applicationOption)
    .option(
      "--authorized-by <application>",
      `sessions authorized by this application: ${applicationNaming}`,
    )
    .addOption(
      choice(
        "--state <state>",
        "only sessions in this state",
        choicesOf(ListSessionsRequestSchema.field.state),
      ),
    )
    .action(listSessions);
  addExample(withConnection(withLimit(list)), "latchkey sessions ls --application 'Web shop'");

  const get = sessions
    .command("get")
    .description("show a session")
    .argument("<id>", "id of the session", parseId)
    .action(getSession);
  addExample(withConnection(get), "latchkey sessions get 0198c8a4-5d6f-7b21-8e3c-1a2b3c4d5e6f");

  const remove = sessions
    .command("rm")
    .alias("delete")
    .description("revoke a session, or all sessions of an application")
    .argument("[id]", "id of the session", parseId)
    .option("--all", "revoke all sessions that the application opened or authorized")
    .option("--opened-only", "with --all: only the sessions that the application opened")
    .option("--application <application>", `the application of --all: ${applicationNaming}`)
    .addOption(yesOption())
    .action(revokeSession);
  addExample(
    withConnection(remove),
    "latchkey sessions rm 0198c8a4-5d6f-7b21-8e3c-1a2b3c4d5e6f",
    "latchkey sessions rm --all --application 'Web shop'",
  );
}

async function openSession(flags: ClientFlags): Promise<void> {
  await withClient(flags, async ({ client, call, output }) => {
    const opened = await client.sessions.createSession({}, call);
    const { id, sessionKey, nonce, expiresAt } = opened;
    requireReader("The session key and the nonce are lost. Open another session.");
    output.show(CreateSessionResponseSchema, opened, (display) =>
      [
        formatDetails(
          [
            ["session", id],
            ["expires", formatTime(expiresAt)],
          ],
          display,
        ),
        formatSecret("session key", sessionKey, display),
        formatSecret("nonce", nonce, display),
      ].join(""),
    );
    output.note(
      `The session key has no access until the session is authorized. Run: ${latchkey("sessions authorize")}`,
    );
  });
}

interface AuthorizeFlags extends ClientFlags {
  readonly nonceFile?: string;
  readonly permission?: string[];
  readonly rules?: string;
  readonly expires?: Date;
}

async function authorizeSession(flags: AuthorizeFlags): Promise<void> {
  const { expires } = flags;
  const grants = await readGrants(flags);
  const expiry = expires ? { expiresAt: timestampFromDate(expires) } : {};
  await withClient(flags, async ({ client, call, output }) => {
    const nonce = await readSecret({ noun: "nonce", file: flags.nonceFile });
    await client.sessions.authorizeSession({ nonce, ...grants, ...expiry }, call);
    output.showValue({}, () => "The session is authorized.\n");
  });
}

async function getSession(id: string, flags: ClientFlags): Promise<void> {
  await withClient(flags, async (context) => {
    const { client, call, output } = context;
    const session = await client.sessions.getSession({ id }, call);
    const { applicationId, authorizedBy } = session;
    const nameOf = await readNames(context, [applicationId, authorizedBy]);
    output.show(SessionSchema, session, (display) => formatSession(session, nameOf, display));
  });
}

interface SessionListFlags extends ClientFlags, ListFlags {
  readonly application?: string;
  readonly authorizedBy?: string;
  readonly state?: string;
}

async function listSessions(flags: SessionListFlags): Promise<void> {
  const { application, authorizedBy, state } = flags;
  await withClient(flags, async (context) => {
    const { client, call, output } = context;
    const filter = {
      ...(application && { applicationId: await findApplicationId(context, application) }),
      ...(authorizedBy && { authorizedBy: await findApplicationId(context, authorizedBy) }),
      ...(state && { state }),
    };
    const list = await readPages(flags, (position) =>
      client.sessions.listSessions({ ...filter, ...position, includeTotal: true }, call),
    );
    const ids = list.data.map(({ applicationId }) => applicationId);
    const nameOf = await readNames(context, ids);
    showList(output, ListSessionsResponseSchema, list, {
      noun: "session",
      format: (rows, display) => formatTable(sessionColumns(nameOf), rows, display),
    });
  });
}

interface RevokeFlags extends ClientFlags, ConfirmFlags {
  readonly all?: boolean;
  readonly openedOnly?: boolean;
  readonly application?: string;
}

async function revokeSession(id: string | undefined, flags: RevokeFlags): Promise<void> {
  const { all = false, openedOnly = false, application } = flags;
  if (id !== undefined && !all && !openedOnly && application === undefined) {
    await withClient(flags, (context) => revokeOne(id, flags, context));
  } else if (id === undefined && all && application !== undefined) {
    await withClient(flags, (context) => revokeAll(application, flags, context));
  } else {
    throw new CommandError(
      "Pass the id of a session, or --all --application APPLICATION.",
      "usage",
    );
  }
}

async function revokeOne(
  id: string,
  flags: RevokeFlags,
  { client, call, output }: ClientContext,
): Promise<void> {
  await confirm(
    `The session ${id} will be revoked. Its key and nonce stop working immediately.`,
    flags,
  );
  await client.sessions.deleteSession({ id }, call);
  output.showValue({ id }, () => `Session ${id} is revoked.\n`);
}

async function revokeAll(
  application: string,
  flags: RevokeFlags,
  context: ClientContext,
): Promise<void> {
  const { client, call, output } = context;
  const { openedOnly = false } = flags;
  const { id, name } = await findApplication(context, application);
  const origin = openedOnly ? "opened" : "opened or authorized";
  await confirm(`All sessions that "${name}" (${id}) ${origin} will be revoked.`, flags);
  const revoked = await client.sessions.revokeAllSessions({ id, openedOnly }, call);
  output.show(RevokeAllSessionsResponseSchema, revoked, () => {
    const count = revoked.count === undefined ? "" : ` (${revoked.count} open)`;
    return `All sessions that "${escapeUnprintable(name)}" ${origin} before ${formatTime(revoked.revokedBefore)}${count} are revoked.\n`;
  });
}

const sessionColumns = (nameOf: NameOf): readonly Column<Session>[] => [
  { title: "ID", text: ({ id }) => id },
  {
    title: "APPLICATION",
    text: ({ applicationId }) => nameOf(applicationId) ?? applicationId,
    shrinkTo: 16,
    optional: true,
  },
  {
    title: "STATE",
    text: ({ state }) => state,
    paint: (text, { state }, { good, warn }) => (state === "authorized" ? good : warn)(text),
  },
  { title: "EXPIRES", text: ({ expiresAt }) => formatRelativeTime(expiresAt) },
  { title: "OPENED", text: ({ createdAt }) => formatRelativeTime(createdAt), optional: true },
  {
    title: "PERMISSIONS",
    text: ({ permissions }) => permissions.join(" "),
    shrinkTo: 12,
    optional: true,
  },
];

function formatSession(session: Session, nameOf: NameOf, display: Display): string {
  const details = formatDetails(
    [
      ["id", session.id],
      ["state", session.state],
      nameDetail("application", session.applicationId, nameOf),
      ["permissions", session.permissions.join(" ")],
      ["opened", formatTime(session.createdAt)],
      ["expires", formatTime(session.expiresAt)],
      ["authorized", formatTime(session.authorizedAt)],
      nameDetail("authorized by", session.authorizedBy, nameOf),
      ["tenant", session.tenantId],
    ],
    display,
  );
  return details + formatRules(session.rules, display);
}

import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  CreateSessionResponseSchema,
  ListSessionsResponseSchema,
  type Session,
  SessionSchema,
} from "../../../gen/latchkey/v1/session_service_pb.js";
import { visible } from "../../lib/printable.js";
import { findApplication, findApplicationId, rulesText } from "../apps/application.js";
import { readRules } from "../apps/rules-file.js";
import { type Calling, type CallingFlags, withClient } from "../client.js";
import { CommandFailure } from "../errors.js";
import { type ListFlags, moreNote, readPages } from "../output.js";
import { confirm, readSecret } from "../prompt.js";
import {
  type Column,
  detailsText,
  type Look,
  momentText,
  relativeText,
  tableText,
} from "../table.js";

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

interface AuthorizeFlags extends CallingFlags {
  readonly nonceFile?: string;
  readonly permission?: string[];
  readonly rules?: string;
  readonly expires?: Date;
}

export async function authorizeSession(flags: AuthorizeFlags): Promise<void> {
  const { permission: permissions = [], expires } = flags;
  const rules = flags.rules === undefined ? [] : await readRules(flags.rules);
  const expiry = expires ? { expiresAt: timestampFromDate(expires) } : {};
  await withClient(flags, async ({ client, call, output }) => {
    const nonce = await readSecret({ noun: "the nonce", file: flags.nonceFile });
    await client.sessions.authorizeSession({ nonce, permissions, rules, ...expiry }, call);
    output.showValue({}, () => "The session is authorized, and its nonce is spent.\n");
  });
}

export async function getSession(id: string, flags: CallingFlags): Promise<void> {
  await withClient(flags, async ({ client, call, output }) => {
    const session = await client.sessions.getSession({ id }, call);
    output.show(SessionSchema, session, (look) => sessionText(session, look));
  });
}

interface SessionListFlags extends CallingFlags, ListFlags {
  readonly application?: string;
  readonly authorizedBy?: string;
  readonly state?: string;
}

export async function listSessions(flags: SessionListFlags): Promise<void> {
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

interface RemoveFlags extends CallingFlags {
  readonly all?: boolean;
  readonly application?: string;
  readonly yes?: boolean;
}

export async function removeSession(id: string | undefined, flags: RemoveFlags): Promise<void> {
  const { all = false, application } = flags;
  if (id !== undefined && !all && application === undefined) {
    await withClient(flags, (calling) => removeOne(id, calling));
  } else if (id === undefined && all && application !== undefined) {
    await withClient(flags, (calling) => removeAll(application, flags, calling));
  } else {
    throw new CommandFailure(
      "Say which session by its id, or --all --application APPLICATION for all of an application.",
      "usage",
    );
  }
}

async function removeOne(id: string, { client, call, output }: Calling): Promise<void> {
  await client.sessions.deleteSession({ id }, call);
  output.showValue({ id }, () => `The session ${id} has ended.\n`);
}

async function removeAll(
  application: string,
  { yes }: RemoveFlags,
  calling: Calling,
): Promise<void> {
  const { client, call, output } = calling;
  const { id, name } = await findApplication(calling, application);
  await confirm(`All sessions of "${name}" (${id}) will end.`, { yes });
  await client.sessions.revokeAllSessions({ id }, call);
  output.showValue(
    { application_id: id },
    () => `All sessions of "${visible(name)}" have ended.\n`,
  );
}

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

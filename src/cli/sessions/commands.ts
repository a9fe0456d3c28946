import type { Command } from "commander";
import { ListSessionsRequestSchema } from "../../../gen/latchkey/v1/session_service_pb.js";
import { choicesOf } from "../../contract/fields.js";
import {
  addExample,
  choice,
  collect,
  fileOption,
  futureTime,
  id,
  lazy,
  withConnection,
  withLimit,
  yesOption,
} from "../options.js";

const ofApplication = [
  "--application <application>",
  "sessions of this application, by id or name",
] as const;

export function addSessionCommands(program: Command): void {
  const sessions = program
    .command("sessions")
    .description("open, authorize, list and revoke sessions");
  addOpenAndAuthorize(sessions);
  addManagement(sessions);
}

function addOpenAndAuthorize(sessions: Command): void {
  const open = sessions
    .command("open")
    .description("open a session with the key of a public application, as a browser does")
    .action(lazy(async () => (await import("./actions.js")).openSession));
  addExample(withConnection(open), "latchkey sessions open --key-file browser.key --json");

  const authorize = sessions
    .command("authorize")
    .description("authorize a session with the key of a private application, as a backend does")
    .addOption(
      fileOption(
        "--nonce-file <file>",
        "file with the nonce, - for stdin (default: prompt or stdin)",
      ),
    )
    .option("--permission <name>", "permission to grant directly; may be repeated", collect)
    .addOption(fileOption("--rules <file>", "file with access rules as a JSON list, - for stdin"))
    .option("--expires <time>", "expiry: a time, or a duration such as 10m", futureTime)
    .action(lazy(async () => (await import("./actions.js")).authorizeSession));
  addExample(
    withConnection(authorize),
    'echo "$NONCE" | latchkey sessions authorize --key-file backend.key --permission token:read',
  );
}

function addManagement(sessions: Command): void {
  const list = sessions
    .command("ls")
    .description("list open sessions, newest first")
    .option(...ofApplication)
    .option(
      "--authorized-by <application>",
      "sessions authorized by this application, by id or name",
    )
    .addOption(
      choice(
        "--state <state>",
        "only sessions in this state",
        choicesOf(ListSessionsRequestSchema.field.state),
      ),
    )
    .action(lazy(async () => (await import("./actions.js")).listSessions));
  addExample(withConnection(withLimit(list)), "latchkey sessions ls --application 'Web shop'");

  const get = sessions
    .command("get")
    .description("show a session")
    .argument("<id>", "id of the session", id)
    .action(lazy(async () => (await import("./actions.js")).getSession));
  addExample(withConnection(get), "latchkey sessions get 0198c8a4-5d6f-7b21-8e3c-1a2b3c4d5e6f");

  const remove = sessions
    .command("rm")
    .description("revoke a session, or all sessions of an application")
    .argument("[id]", "id of the session", id)
    .option("--all", "revoke all sessions of the application")
    .option(...ofApplication)
    .addOption(yesOption())
    .action(lazy(async () => (await import("./actions.js")).revokeSession));
  addExample(
    withConnection(remove),
    "latchkey sessions rm 0198c8a4-5d6f-7b21-8e3c-1a2b3c4d5e6f",
    "latchkey sessions rm --all --application 'Web shop'",
  );
}

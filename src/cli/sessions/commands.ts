import type { Command } from "commander";
import { ListSessionsRequestSchema } from "../../../gen/latchkey/v1/session_service_pb.js";
import { choicesOf } from "../../contract/fields.js";
import {
  choice,
  example,
  fileOption,
  gather,
  id,
  lazily,
  momentAhead,
  withConnection,
  withLimit,
  yesOption,
} from "../options.js";

const ofApplication = [
  "--application <application>",
  "of this application, by its id or name",
] as const;

export function addSessionCommands(program: Command): void {
  const sessions = program.command("sessions").description("open, authorize, see and end sessions");
  addLife(sessions);
  addManaging(sessions);
}

function addLife(sessions: Command): void {
  const open = sessions
    .command("open")
    .description("open a session with the key of a public application, as a browser does")
    .action(lazily(async () => (await import("./actions.js")).openSession));
  example(withConnection(open), "latchkey sessions open --key-file browser.key --json");

  const authorize = sessions
    .command("authorize")
    .description(
      "give a session its access with the key of a private application, as a backend does",
    )
    .addOption(
      fileOption(
        "--nonce-file <file>",
        "the file with the nonce, - for stdin (default: asks, or stdin)",
      ),
    )
    .option("--permission <name>", "a permission on everything; may be repeated", gather)
    .addOption(fileOption("--rules <file>", "access rules as a JSON list, - for stdin"))
    .option("--expires <moment>", "when it ends: a moment, or 10m from now", momentAhead)
    .action(lazily(async () => (await import("./actions.js")).authorizeSession));
  example(
    withConnection(authorize),
    'echo "$NONCE" | latchkey sessions authorize --key-file backend.key --permission token:read',
  );
}

function addManaging(sessions: Command): void {
  const list = sessions
    .command("ls")
    .description("list the sessions that have not ended, newest first")
    .option(...ofApplication)
    .option("--authorized-by <application>", "authorized by this application, by its id or name")
    .addOption(
      choice(
        "--state <state>",
        "only those in this state",
        choicesOf(ListSessionsRequestSchema.field.state),
      ),
    )
    .action(lazily(async () => (await import("./actions.js")).listSessions));
  example(withConnection(withLimit(list)), "latchkey sessions ls --application 'Web shop'");

  const get = sessions
    .command("get")
    .description("show a session")
    .argument("<id>", "which one", id)
    .action(lazily(async () => (await import("./actions.js")).getSession));
  example(withConnection(get), "latchkey sessions get 0198c8a4-5d6f-7b21-8e3c-1a2b3c4d5e6f");

  const remove = sessions
    .command("rm")
    .description("end a session, or all of an application")
    .argument("[id]", "which one", id)
    .option("--all", "end all sessions of the application")
    .option(...ofApplication)
    .addOption(yesOption())
    .action(lazily(async () => (await import("./actions.js")).removeSession));
  example(
    withConnection(remove),
    "latchkey sessions rm 0198c8a4-5d6f-7b21-8e3c-1a2b3c4d5e6f",
    "latchkey sessions rm --all --application 'Web shop'",
  );
}

import type { Command } from "commander";
import { ListEventsRequestSchema } from "../../../gen/latchkey/v1/event_service_pb.js";
import { choicesOf } from "../../contract/fields.js";
import { choice, example, id, lazily, momentAgo, withConnection, withLimit } from "../options.js";

export function addEventCommands(program: Command): void {
  const events = program
    .command("events")
    .description("show what was done and denied, newest first, or as it happens")
    .option(
      "-f, --follow",
      "show what happens from now on, until Ctrl-C; one JSON object a line with --json",
    )
    .option("--target <id>", "only what was done to this application, session or key", id)
    .option("--actor <id>", "only what this application, session or key did", id)
    .addOption(
      choice("--kind <kind>", "only of this kind", choicesOf(ListEventsRequestSchema.field.kind)),
    )
    .option("--since <moment>", "only from then on: a moment, or 1h ago", momentAgo)
    .option("--until <moment>", "only before then", momentAgo)
    .action(lazily(async () => (await import("./actions.js")).showEvents));
  example(
    withConnection(withLimit(events)),
    "latchkey events --since 1h --kind access.denied",
    "latchkey events --follow --json | jq .kind",
  );
}

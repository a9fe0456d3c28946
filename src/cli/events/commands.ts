import type { Command } from "commander";
import { ListEventsRequestSchema } from "../../../gen/latchkey/v1/event_service_pb.js";
import { choicesOf } from "../../contract/fields.js";
import { addExample, choice, id, lazy, pastTime, withConnection, withLimit } from "../options.js";

export function addEventCommands(program: Command): void {
  const events = program
    .command("events")
    .description("list changes and denied requests, newest first, or follow them")
    .option("-f, --follow", "show new events until Ctrl-C; with --json one object per line")
    .option("--target <id>", "only events about this application, session or key", id)
    .option("--actor <id>", "only events caused by this application, session or key", id)
    .addOption(
      choice(
        "--kind <kind>",
        "only events of this kind",
        choicesOf(ListEventsRequestSchema.field.kind),
      ),
    )
    .option("--since <time>", "only events since: a time, or a duration such as 1h", pastTime)
    .option("--until <time>", "only events before: a time, or a duration such as 1h", pastTime)
    .action(lazy(async () => (await import("./actions.js")).showEvents));
  addExample(
    withConnection(withLimit(events)),
    "latchkey events --since 1h --kind access.denied",
    "latchkey events --follow --json | jq .kind",
  );
}

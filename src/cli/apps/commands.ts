import { type Command, Option } from "commander";
import {
  CreateApplicationRequestSchema,
  ListApplicationsRequestSchema,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import { choicesOf } from "../../contract/fields.js";
import {
  choice,
  duration,
  example,
  fileOption,
  gather,
  id,
  lazily,
  momentAgo,
  momentAhead,
  wholeNumber,
  withConnection,
  withLimit,
  yesOption,
} from "../options.js";

/** What an application is named by. */
const application = ["<application>", "its id, or its name where only one has it"] as const;

export function addApplicationCommands(program: Command): void {
  const apps = program.command("apps").description("manage applications and their keys");
  addReading(apps);
  addCreate(apps);
  addUpdate(apps);
  addKeys(apps);
  addEnds(apps);
}

function addReading(apps: Command): void {
  const list = apps
    .command("ls")
    .description("list applications, newest first")
    .addOption(
      choice(
        "--type <type>",
        "only of this type",
        choicesOf(ListApplicationsRequestSchema.field.type),
      ),
    )
    .addOption(
      choice(
        "--status <status>",
        "only those that are so",
        choicesOf(ListApplicationsRequestSchema.field.status),
      ),
    )
    .option("--permission <name>", "only those that hold this permission")
    .option("--name <prefix>", "only those whose name begins so")
    .option(
      "--expires-before <moment>",
      "only those that expire by then: a moment, or 30d",
      momentAhead,
    )
    .option("--unused-since <moment>", "only those not used since: a moment, or 90d", momentAgo)
    .addOption(
      choice(
        "--order <order>",
        "how to sort",
        choicesOf(ListApplicationsRequestSchema.field.order),
      ),
    )
    .action(lazily(async () => (await import("./actions.js")).listApplications));
  withConnection(withLimit(list));
  example(
    list,
    "latchkey apps ls --type private --unused-since 90d",
    "latchkey apps ls --all --json | jq -r '.data[].name'",
  );

  const get = apps
    .command("get")
    .description("show an application")
    .argument(...application)
    .action(lazily(async () => (await import("./actions.js")).getApplication));
  example(withConnection(get), "latchkey apps get 'Web shop'");
}

function grantOptions(command: Command): Command {
  return command
    .option("--permission <name>", "a permission on everything; may be repeated", gather)
    .addOption(fileOption("--rules <file>", "access rules as a JSON list, - for stdin"));
}

function limitOptions(command: Command): Command {
  return command
    .option(
      "--allowed-origin <origin>",
      "a web page that may use its keys; may be repeated",
      gather,
    )
    .option("--allowed-cidr <network>", "a network that may use its keys; may be repeated", gather)
    .option(
      "--session-quota <count>",
      "how many sessions a public application may have open at once",
      wholeNumber("sessions", 1, 1_000_000, 50_000),
    );
}

function newKeyOptions(command: Command): Command {
  return command
    .option("--key-only", "show the new key and nothing else")
    .addOption(
      fileOption(
        "--output-key <file>",
        "write the new key to a file of mode 0600, instead of showing it",
      ),
    );
}

function addCreate(apps: Command): void {
  const create = apps
    .command("create")
    .description("make an application, and show its key once")
    .argument("<name>", "what to call it")
    .addOption(
      choice(
        "--type <type>",
        "what the key is for",
        choicesOf(CreateApplicationRequestSchema.field.type),
      ).makeOptionMandatory(),
    );
  limitOptions(grantOptions(create))
    .option("--expires <moment>", "when it ends by itself: a moment, or 30d from now", momentAhead)
    .action(lazily(async () => (await import("./actions.js")).createApplication));
  withConnection(newKeyOptions(create));
  example(
    create,
    "latchkey apps create Backend --type private --permission token:read --output-key backend.key",
    "KEY=$(latchkey apps create Shop --type public --permission token:create --expires 90d --key-only)",
  );
}

function addUpdate(apps: Command): void {
  const update = apps
    .command("update")
    .description("change what is said of an application, and nothing else")
    .argument(...application)
    .option("--name <name>", "what to call it")
    .option("--add-permission <name>", "one more permission; may be repeated", gather)
    .option("--remove-permission <name>", "one permission less; may be repeated", gather);
  limitOptions(grantOptions(update))
    .addOption(
      new Option("--any-origin", "let its keys be used from any page").conflicts("allowedOrigin"),
    )
    .addOption(
      new Option("--any-cidr", "let its keys be used from any network").conflicts("allowedCidr"),
    )
    .addOption(
      new Option(
        "--default-session-quota",
        "let it have as many sessions open as the service allows",
      ).conflicts("sessionQuota"),
    )
    .option("--if-match <version>", "only where it still has this version")
    .action(lazily(async () => (await import("./actions.js")).updateApplication));
  example(
    withConnection(update),
    "latchkey apps update Backend --add-permission token:use",
    "latchkey apps update Backend --rules rules.json",
  );
}

function addKeys(apps: Command): void {
  const rotate = apps
    .command("rotate")
    .description("give an application a new key, and show it once")
    .argument(...application)
    .option("--grace <time>", "how long the key before it goes on working", duration)
    .addOption(yesOption())
    .action(lazily(async () => (await import("./actions.js")).rotateKey));
  withConnection(newKeyOptions(rotate));
  example(rotate, "latchkey apps rotate Backend --grace 1h --output-key backend.key.new");

  const keys = apps
    .command("keys")
    .description("list the keys of an application, without their secrets")
    .argument(...application)
    .action(lazily(async () => (await import("./actions.js")).listKeys));
  example(withConnection(keys), "latchkey apps keys Backend");

  const end = apps
    .command("end-key")
    .description("end a key of an application before its time")
    .argument(...application)
    .argument("<key-id>", "which one, as `apps keys` shows it", id)
    .action(lazily(async () => (await import("./actions.js")).endKey));
  example(
    withConnection(end),
    "latchkey apps end-key Backend 0198c8a2-7f40-7a3b-8c1d-3e5f7a9b1c2d",
  );
}

function addEnds(apps: Command): void {
  const disable = apps
    .command("disable")
    .description("let the keys of an application not work for now")
    .argument(...application)
    .action(lazily(async () => (await import("./actions.js")).disableApplication));
  example(withConnection(disable), "latchkey apps disable Backend");

  const enable = apps
    .command("enable")
    .description("let them work again")
    .argument(...application)
    .action(lazily(async () => (await import("./actions.js")).enableApplication));
  example(withConnection(enable), "latchkey apps enable Backend");

  const remove = apps
    .command("rm")
    .description("delete an application, with its keys and sessions")
    .argument(...application)
    .addOption(yesOption())
    .action(lazily(async () => (await import("./actions.js")).removeApplication));
  example(withConnection(remove), "latchkey apps rm 'Old backend'");
}

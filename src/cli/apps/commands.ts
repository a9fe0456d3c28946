import { type Command, Option } from "commander";
import {
  CreateApplicationRequestSchema,
  ListApplicationsRequestSchema,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import { choicesOf } from "../../contract/fields.js";
import { defaultGracePeriodMs } from "../../contract/grace-period.js";
import { collect, duration, futureTime, id, pastTime } from "../option-values.js";
import {
  addExample,
  choice,
  fileOption,
  withConnection,
  withLimit,
  yesOption,
} from "../options.js";
import { formatExactDuration } from "../output.js";
import { applicationNaming } from "./application.js";
import {
  createApplication,
  disableApplication,
  enableApplication,
  getApplication,
  listApplications,
  removeApplication,
  updateApplication,
} from "./applications.js";
import { clearOptions, fieldOptions } from "./fields.js";
import { listKeys, revokeKey, rotateKey } from "./keys.js";

const application = ["<application>", applicationNaming] as const;

export function addApplicationCommands(program: Command): void {
  const apps = program
    .command("apps")
    .helpCommand(false)
    .description("manage applications and their keys");
  addList(apps);
  addCreate(apps);
  addUpdate(apps);
  addKeys(apps);
  addStatusAndDelete(apps);
}

function addList(apps: Command): void {
  const list = apps
    .command("ls")
    .alias("list")
    .description("list applications, newest first")
    .addOption(
      choice(
        "--type <type>",
        "only applications of this type",
        choicesOf(ListApplicationsRequestSchema.field.type),
      ),
    )
    .addOption(
      choice(
        "--status <status>",
        "only applications with this status",
        choicesOf(ListApplicationsRequestSchema.field.status),
      ),
    )
    .option("--permission <name>", "only applications with this permission")
    .option(
      "--search <text>",
      "only applications with these words in name, description or external id, or with this id; - for a key from a prompt or stdin",
    )
    .option("--name <prefix>", "only applications whose name starts with this")
    .option("--external-id <id>", "only the application with this external id")
    .option("--created-by <application>", "only applications that this application created")
    .option(
      "--expires-before <time>",
      "only applications that expire before: a time, or a duration such as 30d",
      futureTime,
    )
    .option(
      "--unused-since <time>",
      "only applications not used since: a time, or a duration such as 90d",
      pastTime,
    )
    .addOption(
      choice("--order <order>", "sort order", choicesOf(ListApplicationsRequestSchema.field.order)),
    )
    .action(listApplications);
  withConnection(withLimit(list));
  addExample(
    list,
    "latchkey apps ls --search shop",
    "latchkey apps ls --type private --unused-since 90d",
    "latchkey apps ls --all --json | jq -r '.data[].name'",
  );

  const get = apps
    .command("get")
    .description("show an application")
    .argument(...application)
    .action(getApplication);
  addExample(
    withConnection(get),
    "latchkey apps get 'Web shop'",
    "latchkey apps get external:svc-4711 --json",
  );
}

function grantOptions(command: Command, permission: string): Command {
  return command
    .option("--permission <name>", `${permission}; may be repeated`, collect)
    .addOption(fileOption("--rules <file>", "file with access rules as a JSON list, - for stdin"));
}

function newKeyOptions(command: Command): Command {
  return command
    .option("--key-only", "print only the new key")
    .addOption(fileOption("--output-key <file>", "write the new key to a new file of mode 0600"));
}

function addCreate(apps: Command): void {
  const create = apps
    .command("create")
    .description("create an application, and print its key once")
    .argument("<name>", "name of the application")
    .addOption(
      choice(
        "--type <type>",
        "type of the application",
        choicesOf(CreateApplicationRequestSchema.field.type),
      ).makeOptionMandatory(),
    );
  fieldOptions(grantOptions(create, "permission to grant directly")).action(createApplication);
  withConnection(newKeyOptions(create));
  addExample(
    create,
    "latchkey apps create Backend --type private --permission token:read",
    "latchkey apps create Shop --type public --permission token:create",
    "KEY=$(latchkey apps create Job --type private --permission a:b --key-only)",
  );
}

function addUpdate(apps: Command): void {
  const update = apps
    .command("update")
    .description("change only the given fields of an application")
    .argument(...application)
    .option("--name <name>", "new name")
    .option("--add-permission <name>", "permission to add; may be repeated", collect)
    .option("--remove-permission <name>", "permission to remove; may be repeated", collect);
  clearOptions(
    fieldOptions(grantOptions(update, "permission to grant directly; replaces all current ones")),
  )
    .option("--if-match <version>", "fail unless it has this version")
    .action(updateApplication);
  addExample(
    withConnection(update),
    "latchkey apps update Backend --add-permission token:use",
    "latchkey apps update external:svc-4711 --metadata team=payments --no-expires",
  );
}

function addKeys(apps: Command): void {
  const rotate = apps
    .command("rotate")
    .description("create a new key for an application, and print it once")
    .argument(...application)
    .addOption(
      new Option("--grace <time>", "how long the current key stays valid")
        .argParser(duration)
        .default(defaultGracePeriodMs, formatExactDuration(defaultGracePeriodMs)),
    )
    .option("--no-grace", "revoke the current key and all earlier ones now")
    .addOption(yesOption())
    .action(rotateKey);
  withConnection(newKeyOptions(rotate));
  addExample(rotate, "latchkey apps rotate Backend --grace 1h --output-key backend.key.new");

  const keys = apps
    .command("keys")
    .description("list the keys of an application and their last use")
    .argument(...application)
    .action(listKeys);
  addExample(withConnection(keys), "latchkey apps keys Backend");

  const revoke = apps
    .command("revoke-key")
    .description("revoke one key of an application")
    .argument(...application)
    .argument("<key-id>", "id of the key, as listed by `apps keys`", id)
    .addOption(yesOption())
    .action(revokeKey);
  addExample(
    withConnection(revoke),
    "latchkey apps revoke-key Backend 0198c8a2-7f40-7a3b-8c1d-3e5f7a9b1c2d",
  );
}

function addStatusAndDelete(apps: Command): void {
  const disable = apps
    .command("disable")
    .description("refuse the keys and sessions of an application")
    .argument(...application)
    .addOption(yesOption())
    .action(disableApplication);
  addExample(withConnection(disable), "latchkey apps disable Backend");

  const enable = apps
    .command("enable")
    .description("accept the keys and sessions of an application again")
    .argument(...application)
    .action(enableApplication);
  addExample(withConnection(enable), "latchkey apps enable Backend");

  const remove = apps
    .command("rm")
    .alias("delete")
    .description("delete an application, with its keys and sessions")
    .argument(...application)
    .addOption(yesOption())
    .action(removeApplication);
  addExample(withConnection(remove), "latchkey apps rm 'Old backend'");
}

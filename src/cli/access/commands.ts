import type { Command } from "commander";
import { ListPermissionsRequestSchema } from "../../../gen/latchkey/v1/access_service_pb.js";
import { choicesOf } from "../../contract/fields.js";
import { addExample, choice, fileOption, lazy, withConnection } from "../options.js";

export function addAccessCommands(program: Command): void {
  const check = program
    .command("check")
    .description(
      "check whether a key has a permission, and why; exits with 0 if allowed, 3 if denied",
    )
    .argument("<permission>", "permission to check, for example token:read")
    .addOption(
      fileOption(
        "--subject-file <file>",
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
    .action(lazy(async () => (await import("./actions.js")).checkAccess));
  addExample(
    withConnection(check),
    "latchkey check token:read --container /pci/ --subject-file shop.key",
    'echo "$KEY" | latchkey check token:use && echo allowed',
  );

  const whoami = program
    .command("whoami")
    .description("show the owner of your key and its permissions")
    .action(lazy(async () => (await import("./actions.js")).whoAmI));
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
    )
    .action(lazy(async () => (await import("./actions.js")).listPermissions));
  addExample(withConnection(permissions), "latchkey permissions --type public");
}

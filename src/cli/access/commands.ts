import type { Command } from "commander";
import { ListPermissionsRequestSchema } from "../../../gen/latchkey/v1/access_service_pb.js";
import { choicesOf } from "../../contract/fields.js";
import { choice, example, fileOption, lazily, withConnection } from "../options.js";

export function addAccessCommands(program: Command): void {
  const check = program
    .command("check")
    .description("ask whether a key may do something, and why; ends with 0 for yes and 3 for no")
    .argument("<permission>", "what it wants to do, for example token:read")
    .addOption(
      fileOption(
        "--subject-file <file>",
        "the file with the key to check, - for stdin (default: asks, or stdin)",
      ),
    )
    .option("--container <path>", "the container of the token that it wants to do it with")
    .option("--id <id>", "the id of that token")
    .option("--origin <origin>", "the web page that the key was used from")
    .option("--address <address>", "the network address that it was used from")
    .action(lazily(async () => (await import("./actions.js")).checkAccess));
  example(
    withConnection(check),
    "latchkey check token:read --container /pci/ --subject-file shop.key",
    'echo "$KEY" | latchkey check token:use && echo allowed',
  );

  const self = program
    .command("whoami")
    .description("show whose key it is that you call with, and what it may do")
    .action(lazily(async () => (await import("./actions.js")).whoAmI));
  example(withConnection(self), "latchkey whoami --profile staging");

  const permissions = program
    .command("permissions")
    .description("list the permissions that the service knows")
    .addOption(
      choice(
        "--type <type>",
        "only those that this type may hold",
        choicesOf(ListPermissionsRequestSchema.field.type),
      ),
    )
    .action(lazily(async () => (await import("./actions.js")).listPermissions));
  example(withConnection(permissions), "latchkey permissions --type public");
}

import type { Command } from "commander";
import {
  type Application,
  ApplicationSchema,
  CreateApplicationRequestSchema,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import { choicesOf } from "../../contract/fields.js";
import { escapeUnprintable } from "../../lib/terminal.js";
import { type ClientContext, type ClientFlags, withClient } from "../client.js";
import { CommandError } from "../errors.js";
import { grantOptions, readGrants, readRules, requireGrants } from "../grants.js";
import { collect } from "../option-values.js";
import { addExample, choice, connectionFlags, withConnection, yesOption } from "../options.js";
import type { Output } from "../output.js";
import { type ConfirmFlags, confirm } from "../prompt.js";
import {
  type ClearFlags,
  clearOptions,
  type FieldFlags,
  fieldOptions,
  fieldsOf,
  type GrantFlags,
  updatedFields,
} from "./fields.js";
import {
  applicationArgument,
  findApplication,
  findApplicationId,
  isOwnApplication,
} from "./find-application.js";
import { addKeys, type NewKeyFlags, newKeyOptions, withNewKey } from "./keys.js";
import { addListAndGet, showApplication } from "./list-applications.js";

export function addApplicationCommands(program: Command): void {
  const apps = program
    .command("apps")
    .helpCommand(false)
    .description("manage applications and their keys");
  addListAndGet(apps);
  addCreate(apps);
  addUpdate(apps);
  addKeys(apps);
  addStatusAndDelete(apps);
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

interface CreateFlags extends ClientFlags, NewKeyFlags, FieldFlags {
  readonly type: string;
  readonly permission?: string[];
  readonly rules?: string;
}

async function createApplication(name: string, flags: CreateFlags): Promise<void> {
  const { type } = flags;
  const request = { name, type, ...(await readGrants(flags)), ...fieldsOf(flags) };
  await withClient(flags, async ({ client, call, output }) => {
    await withNewKey(flags, output, () => client.applications.createApplication(request, call));
  });
}

function addUpdate(apps: Command): void {
  const update = apps
    .command("update")
    .description("change only the given fields of an application")
    .argument(...applicationArgument)
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

interface UpdateFlags extends ClientFlags, GrantFlags, FieldFlags, ClearFlags {
  readonly ifMatch?: string;
}

/** Changes only the given fields. The version check prevents lost updates. */
async function updateApplication(reference: string, flags: UpdateFlags): Promise<void> {
  const changingNothing = [...connectionFlags(), "ifMatch"];
  if (Object.keys(flags).every((name) => changingNothing.includes(name))) {
    throw new CommandError("Pass at least one option to change, for example --name.", "usage");
  }
  const rules = flags.rules === undefined ? undefined : await readRules(flags.rules);
  await withClient(flags, async (context) => {
    const { client, call } = context;
    const before = await findApplication(context, reference);
    const request = {
      id: before.id,
      ...(flags.name !== undefined && { name: flags.name }),
      ...requireGrants({
        permissions: changedPermissions(before, flags),
        rules: rules ?? before.rules,
      }),
      ...fieldsOf(flags),
      updateMask: { paths: updatedFields(flags) },
      ifMatch: flags.ifMatch ?? before.version,
    };
    await showApplication(await client.applications.updateApplication(request, call), context);
  });
}

function changedPermissions({ permissions }: Application, flags: UpdateFlags): string[] {
  const { permission, addPermission = [], removePermission = [] } = flags;
  const changed = new Set([...(permission ?? permissions), ...addPermission]);
  for (const removed of removePermission) {
    if (!changed.delete(removed)) {
      throw new CommandError(
        `--remove-permission ${removed}: the application does not have this permission.`,
        "usage",
      );
    }
  }
  return [...changed];
}

function addStatusAndDelete(apps: Command): void {
  const disable = apps
    .command("disable")
    .description("refuse the keys and sessions of an application")
    .argument(...applicationArgument)
    .addOption(yesOption())
    .action(disableApplication);
  addExample(withConnection(disable), "latchkey apps disable Backend");

  const enable = apps
    .command("enable")
    .description("accept the keys and sessions of an application again")
    .argument(...applicationArgument)
    .action(enableApplication);
  addExample(withConnection(enable), "latchkey apps enable Backend");

  const remove = apps
    .command("rm")
    .alias("delete")
    .description("delete an application, with its keys and sessions")
    .argument(...applicationArgument)
    .addOption(yesOption())
    .action(removeApplication);
  addExample(withConnection(remove), "latchkey apps rm 'Old backend'");
}

async function removeApplication(
  reference: string,
  flags: ClientFlags & ConfirmFlags,
): Promise<void> {
  await withClient(flags, async (context) => {
    const { client, call, output } = context;
    const { id, name, type, version } = await findApplication(context, reference);
    await confirm(
      `The ${type} application "${name}" (${id}) will be deleted, with its keys and sessions.` +
        (await ownKeyWarning(context, id)),
      flags,
      name,
    );
    // Fails if it changed after the prompt showed it.
    await client.applications.deleteApplication({ id, ifMatch: version }, call);
    output.showValue({ id }, () => `${escapeUnprintable(`"${name}" (${id}) was deleted.`)}\n`);
  });
}

async function disableApplication(
  reference: string,
  flags: ClientFlags & ConfirmFlags,
): Promise<void> {
  await withClient(flags, async (context) => {
    const { client, call, output } = context;
    const { id, name, version } = await findApplication(context, reference);
    await confirm(
      `"${name}" (${id}) will be disabled. Its keys and the sessions that it opened or authorized ` +
        "are refused until it is enabled again." +
        (await ownKeyWarning(context, id)),
      flags,
    );
    // Fails if it changed after the prompt showed it.
    showStatus(
      output,
      await client.applications.disableApplication({ id, ifMatch: version }, call),
    );
  });
}

async function enableApplication(reference: string, flags: ClientFlags): Promise<void> {
  await withClient(flags, async (context) => {
    const { client, call, output } = context;
    const id = await findApplicationId(context, reference);
    showStatus(output, await client.applications.enableApplication({ id }, call));
  });
}

function showStatus(output: Output, application: Application): void {
  const { name, status } = application;
  const text = escapeUnprintable(`"${name}" is ${status}.`);
  output.show(ApplicationSchema, application, () => `${text}\n`);
}

async function ownKeyWarning(context: ClientContext, id: string): Promise<string> {
  return (await isOwnApplication(context, id))
    ? " Your own key belongs to it: the service will refuse your next commands."
    : "";
}

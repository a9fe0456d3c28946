import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  type Application,
  ApplicationSchema,
  ListApplicationsResponseSchema,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import { parseKey } from "../../contract/key-format.js";
import { escapeUnprintable } from "../../lib/terminal.js";
import { type ClientContext, type ClientFlags, withClient } from "../client.js";
import { CommandError } from "../errors.js";
import { readGrants, readRules, requireGrants } from "../grants.js";
import { type ListFlags, readPages, showList } from "../list.js";
import { connectionFlags } from "../options.js";
import type { Output } from "../output.js";
import { type ConfirmFlags, confirm, readSecret } from "../prompt.js";
import { formatTable } from "../table.js";
import {
  applicationColumns,
  findApplication,
  findApplicationId,
  readNames,
} from "./application.js";
import {
  type ClearFlags,
  clearedFields,
  type FieldFlags,
  fieldsOf,
  formatApplication,
} from "./fields.js";
import { type NewKeyFlags, withNewKey } from "./keys.js";

interface CreateFlags extends ClientFlags, NewKeyFlags, FieldFlags {
  readonly type: string;
  readonly permission?: string[];
  readonly rules?: string;
}

export async function createApplication(name: string, flags: CreateFlags): Promise<void> {
  const { type } = flags;
  const request = { name, type, ...(await readGrants(flags)), ...fieldsOf(flags) };
  await withClient(flags, ({ client, call, output }) =>
    withNewKey(flags, output, () => client.applications.createApplication(request, call)),
  );
}

export async function getApplication(reference: string, flags: ClientFlags): Promise<void> {
  await withClient(flags, async (context) =>
    showApplication(await findApplication(context, reference), context),
  );
}

async function showApplication(application: Application, context: ClientContext): Promise<void> {
  const nameOf = await readNames(context, [application.createdBy, application.modifiedBy]);
  context.output.show(ApplicationSchema, application, (display) =>
    formatApplication(application, nameOf, display),
  );
}

interface ApplicationListFlags extends ClientFlags, ListFlags {
  readonly type?: string;
  readonly status?: string;
  readonly permission?: string;
  readonly search?: string;
  readonly name?: string;
  readonly externalId?: string;
  readonly createdBy?: string;
  readonly expiresBefore?: Date;
  readonly unusedSince?: Date;
  readonly order?: string;
}

export async function listApplications(flags: ApplicationListFlags): Promise<void> {
  const { type, status, permission, name: namePrefix, externalId, order } = flags;
  const { createdBy, expiresBefore, unusedSince } = flags;
  const q = await readSearch(flags);
  const filter = {
    ...(type && { type }),
    ...(status && { status }),
    ...(permission && { permission }),
    ...(q !== undefined && { q }),
    ...(namePrefix && { namePrefix }),
    ...(externalId !== undefined && { externalId }),
    ...(order && { order }),
    ...(expiresBefore && { expiresBefore: timestampFromDate(expiresBefore) }),
    ...(unusedSince && { lastUsedBefore: timestampFromDate(unusedSince) }),
  };
  await withClient(flags, async (context) => {
    const { client, call, output } = context;
    const creator = createdBy && { createdBy: await findApplicationId(context, createdBy) };
    const list = await readPages(flags, (position) =>
      client.applications.listApplications({ ...filter, ...creator, ...position }, call),
    );
    showList(output, ListApplicationsResponseSchema, list, {
      noun: "application",
      format: (rows, display) => formatTable(applicationColumns, rows, display),
    });
  });
}

/** A key comes from a prompt or stdin: other users see arguments. */
async function readSearch({ search }: ApplicationListFlags): Promise<string | undefined> {
  if (search !== undefined && parseKey(search.trim())) {
    throw new CommandError(
      "--search must not be a key: other users and the shell history could see it.",
      "usage",
      "Use --search - and enter the key at the prompt, or pass it on stdin.",
    );
  }
  return search === "-" ? readSecret({ noun: "key" }) : search;
}

export async function removeApplication(
  reference: string,
  flags: ClientFlags & ConfirmFlags,
): Promise<void> {
  await withClient(flags, async (context) => {
    const { client, call, output } = context;
    const { id, name, type, version } = await findApplication(context, reference);
    await confirm(
      `The ${type} application "${name}" (${id}) will be deleted, with its keys and sessions.`,
      flags,
      name,
    );
    // Fails if it changed after the prompt showed it.
    await client.applications.deleteApplication({ id, ifMatch: version }, call);
    output.showValue({ id }, () => `"${escapeUnprintable(name)}" (${id}) was deleted.\n`);
  });
}

export async function disableApplication(
  reference: string,
  flags: ClientFlags & ConfirmFlags,
): Promise<void> {
  await withClient(flags, async (context) => {
    const { client, call, output } = context;
    const { id, name, version } = await findApplication(context, reference);
    await confirm(
      `"${name}" (${id}) will be disabled. Its keys and the sessions that it opened or authorized ` +
        "are refused until it is enabled again.",
      flags,
    );
    // Fails if it changed after the prompt showed it.
    showStatus(
      output,
      await client.applications.disableApplication({ id, ifMatch: version }, call),
    );
  });
}

export async function enableApplication(reference: string, flags: ClientFlags): Promise<void> {
  await withClient(flags, async (context) => {
    const { client, call, output } = context;
    const id = await findApplicationId(context, reference);
    showStatus(output, await client.applications.enableApplication({ id }, call));
  });
}

function showStatus(output: Output, application: Application): void {
  const { name, status } = application;
  output.show(ApplicationSchema, application, () => `"${escapeUnprintable(name)}" is ${status}.\n`);
}

interface UpdateFlags extends ClientFlags, FieldFlags, ClearFlags {
  readonly name?: string;
  readonly permission?: string[];
  readonly addPermission?: string[];
  readonly removePermission?: string[];
  readonly rules?: string;
  readonly ifMatch?: string;
}

/**
 * Changes only the given fields. The service replaces the name and all grants,
 * so they are read first. The version check prevents lost updates.
 */
export async function updateApplication(reference: string, flags: UpdateFlags): Promise<void> {
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
      name: flags.name ?? before.name,
      ...requireGrants({
        permissions: changedPermissions(before, flags),
        rules: rules ?? before.rules,
      }),
      ...fieldsOf(flags),
      updateMask: { paths: clearedFields(flags) },
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

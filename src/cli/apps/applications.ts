import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  type Application,
  ApplicationSchema,
  ListApplicationsResponseSchema,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import { escapeUnprintable } from "../../lib/terminal.js";
import {
  type ClientFlags,
  type ListFlags,
  readPages,
  truncationNote,
  withClient,
} from "../client.js";
import { CommandError } from "../errors.js";
import { readGrants, readRules, requireGrants } from "../grants.js";
import { confirm } from "../prompt.js";
import { formatTable } from "../table.js";
import {
  applicationColumns,
  findApplication,
  findApplicationId,
  formatApplication,
} from "./application.js";
import { type NewKeyFlags, withNewKey } from "./keys.js";

interface CreateFlags extends ClientFlags, NewKeyFlags {
  readonly type: string;
  readonly permission?: string[];
  readonly rules?: string;
  readonly expires?: Date;
  readonly allowedOrigin?: string[];
  readonly allowedCidr?: string[];
  readonly sessionQuota?: number;
}

export async function createApplication(name: string, flags: CreateFlags): Promise<void> {
  const { type, expires } = flags;
  const { allowedOrigin: allowedOrigins = [], allowedCidr: allowedCidrs = [] } = flags;
  const grants = await readGrants(flags);
  const expiry = expires ? { expiresAt: timestampFromDate(expires) } : {};
  const quota = flags.sessionQuota === undefined ? {} : { sessionQuota: flags.sessionQuota };
  await withClient(flags, ({ client, call, output }) =>
    withNewKey(flags, output, () =>
      client.applications.createApplication(
        { name, type, ...grants, allowedOrigins, allowedCidrs, ...expiry, ...quota },
        call,
      ),
    ),
  );
}

export async function getApplication(idOrName: string, flags: ClientFlags): Promise<void> {
  await withClient(flags, async (context) => {
    const application = await findApplication(context, idOrName);
    context.output.show(ApplicationSchema, application, (display) =>
      formatApplication(application, display),
    );
  });
}

interface ApplicationListFlags extends ClientFlags, ListFlags {
  readonly type?: string;
  readonly status?: string;
  readonly permission?: string;
  readonly name?: string;
  readonly expiresBefore?: Date;
  readonly unusedSince?: Date;
  readonly order?: string;
}

export async function listApplications(flags: ApplicationListFlags): Promise<void> {
  const { type, status, permission, name: namePrefix, order, expiresBefore, unusedSince } = flags;
  const filter = {
    ...(type && { type }),
    ...(status && { status }),
    ...(permission && { permission }),
    ...(namePrefix && { namePrefix }),
    ...(order && { order }),
    ...(expiresBefore && { expiresBefore: timestampFromDate(expiresBefore) }),
    ...(unusedSince && { lastUsedBefore: timestampFromDate(unusedSince) }),
  };
  await withClient(flags, async ({ client, call, output }) => {
    const list = await readPages(flags, (position) =>
      client.applications.listApplications({ ...filter, ...position }, call),
    );
    output.show(ListApplicationsResponseSchema, list.page, (display) =>
      formatTable(applicationColumns, list.page.data, display),
    );
    output.note(truncationNote(list));
  });
}

export async function removeApplication(
  idOrName: string,
  flags: ClientFlags & { readonly yes?: boolean },
): Promise<void> {
  await withClient(flags, async (context) => {
    const { client, call, output } = context;
    const { id, name, type, version } = await findApplication(context, idOrName);
    await confirm(
      `The ${type} application "${name}" (${id}) will be deleted, with its keys and sessions.`,
      { yes: flags.yes, typed: name },
    );
    // Fails if it changed after the prompt showed it.
    await client.applications.deleteApplication({ id, ifMatch: version }, call);
    output.showValue({ id }, () => `"${escapeUnprintable(name)}" (${id}) was deleted.\n`);
  });
}

export const disableApplication = (idOrName: string, flags: ClientFlags) =>
  setStatus("disableApplication", idOrName, flags);

export const enableApplication = (idOrName: string, flags: ClientFlags) =>
  setStatus("enableApplication", idOrName, flags);

async function setStatus(
  method: "disableApplication" | "enableApplication",
  idOrName: string,
  flags: ClientFlags,
): Promise<void> {
  await withClient(flags, async (context) => {
    const { client, call, output } = context;
    const id = await findApplicationId(context, idOrName);
    const application = await client.applications[method]({ id }, call);
    output.show(
      ApplicationSchema,
      application,
      () => `"${escapeUnprintable(application.name)}" is ${application.status}.\n`,
    );
  });
}

interface UpdateFlags extends ClientFlags {
  readonly name?: string;
  readonly permission?: string[];
  readonly addPermission?: string[];
  readonly removePermission?: string[];
  readonly rules?: string;
  readonly allowedOrigin?: string[];
  readonly anyOrigin?: boolean;
  readonly allowedCidr?: string[];
  readonly anyCidr?: boolean;
  readonly sessionQuota?: number;
  readonly defaultSessionQuota?: boolean;
  readonly ifMatch?: string;
}

const changeFlags = [
  "name",
  "permission",
  "addPermission",
  "removePermission",
  "rules",
  "allowedOrigin",
  "anyOrigin",
  "allowedCidr",
  "anyCidr",
  "sessionQuota",
  "defaultSessionQuota",
] as const satisfies readonly (keyof UpdateFlags)[];

/**
 * Changes only the given fields. The service replaces the name and all grants,
 * so they are read first. The version check prevents lost updates.
 */
export async function updateApplication(idOrName: string, flags: UpdateFlags): Promise<void> {
  if (changeFlags.every((name) => flags[name] === undefined)) {
    throw new CommandError("Pass at least one option to change, for example --name.", "usage");
  }
  const rules = flags.rules === undefined ? undefined : await readRules(flags.rules);
  await withClient(flags, async (context) => {
    const { client, call, output } = context;
    const before = await findApplication(context, idOrName);
    const request = {
      id: before.id,
      name: flags.name ?? before.name,
      ...requireGrants({
        permissions: changedPermissions(before, flags),
        rules: rules ?? before.rules,
      }),
      allowedOrigins: flags.allowedOrigin ?? [],
      allowedCidrs: flags.allowedCidr ?? [],
      ...(flags.sessionQuota !== undefined && { sessionQuota: flags.sessionQuota }),
      updateMask: {
        paths: [
          ...(flags.anyOrigin ? ["allowed_origins"] : []),
          ...(flags.anyCidr ? ["allowed_cidrs"] : []),
          ...(flags.defaultSessionQuota ? ["session_quota"] : []),
        ],
      },
      ifMatch: flags.ifMatch ?? before.version,
    };
    const updated = await client.applications.updateApplication(request, call);
    output.show(ApplicationSchema, updated, (display) => formatApplication(updated, display));
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

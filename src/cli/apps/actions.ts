import { durationFromMs, timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  type Application,
  type ApplicationKey,
  ApplicationSchema,
  ListApplicationKeysResponseSchema,
  ListApplicationsResponseSchema,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import { visible } from "../../lib/printable.js";
import { type CallingFlags, withClient } from "../client.js";
import { CommandFailure } from "../errors.js";
import { type ListFlags, moreNote, readPages } from "../output.js";
import { confirm } from "../prompt.js";
import { type Column, relativeText, tableText } from "../table.js";
import {
  applicationColumns,
  applicationText,
  findApplication,
  findApplicationId,
} from "./application.js";
import { type NewKeyFlags, withNewKey } from "./new-key.js";
import { readRules } from "./rules-file.js";

interface CreateFlags extends CallingFlags, NewKeyFlags {
  readonly type: string;
  readonly permission?: string[];
  readonly rules?: string;
  readonly expires?: Date;
  readonly allowedOrigin?: string[];
  readonly allowedCidr?: string[];
  readonly sessionQuota?: number;
}

export async function createApplication(name: string, flags: CreateFlags): Promise<void> {
  const { type, permission: permissions = [], expires } = flags;
  const { allowedOrigin: allowedOrigins = [], allowedCidr: allowedCidrs = [] } = flags;
  const rules = flags.rules === undefined ? [] : await readRules(flags.rules);
  const expiry = expires ? { expiresAt: timestampFromDate(expires) } : {};
  const quota = flags.sessionQuota === undefined ? {} : { sessionQuota: flags.sessionQuota };
  await withClient(flags, ({ client, call, output }) =>
    withNewKey(flags, output, () =>
      client.applications.createApplication(
        { name, type, permissions, rules, allowedOrigins, allowedCidrs, ...expiry, ...quota },
        call,
      ),
    ),
  );
}

export async function getApplication(idOrName: string, flags: CallingFlags): Promise<void> {
  await withClient(flags, async (calling) => {
    const application = await findApplication(calling, idOrName);
    calling.output.show(ApplicationSchema, application, (look) =>
      applicationText(application, look),
    );
  });
}

const keyColumns: readonly Column<ApplicationKey>[] = [
  { title: "ID", text: ({ id }) => id },
  { title: "CREATED", text: ({ createdAt }) => relativeText(createdAt) },
  { title: "ENDS", text: ({ expiresAt }) => relativeText(expiresAt) },
  { title: "LAST USED", text: ({ lastUsedAt }) => relativeText(lastUsedAt, Date.now(), "never") },
];

export async function listKeys(idOrName: string, flags: CallingFlags): Promise<void> {
  await withClient(flags, async (calling) => {
    const { client, call, output } = calling;
    const id = await findApplicationId(calling, idOrName);
    const keys = await client.applications.listApplicationKeys({ id }, call);
    output.show(ListApplicationKeysResponseSchema, keys, (look) =>
      tableText(keyColumns, keys.data, look),
    );
  });
}

export async function endKey(idOrName: string, keyId: string, flags: CallingFlags): Promise<void> {
  await withClient(flags, async (calling) => {
    const { client, call, output } = calling;
    const id = await findApplicationId(calling, idOrName);
    await client.applications.deleteApplicationKey({ id, keyId }, call);
    output.showValue({ id, key_id: keyId }, () => `The key ${keyId} has ended.\n`);
  });
}

interface ApplicationListFlags extends CallingFlags, ListFlags {
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
  const search = {
    ...(type && { type }),
    ...(status && { status }),
    ...(permission && { permission }),
    ...(namePrefix && { namePrefix }),
    ...(order && { order }),
    ...(expiresBefore && { expiresBefore: timestampFromDate(expiresBefore) }),
    ...(unusedSince && { lastUsedBefore: timestampFromDate(unusedSince) }),
  };
  await withClient(flags, async ({ client, call, output }) => {
    const found = await readPages(flags, (place) =>
      client.applications.listApplications({ ...search, ...place }, call),
    );
    output.show(ListApplicationsResponseSchema, found, (look) =>
      tableText(applicationColumns, found.data, look),
    );
    output.note(moreNote(found));
  });
}

export async function removeApplication(
  idOrName: string,
  flags: CallingFlags & { readonly yes?: boolean },
): Promise<void> {
  await withClient(flags, async (calling) => {
    const { client, call, output } = calling;
    const { id, name, type, version } = await findApplication(calling, idOrName);
    await confirm(
      `The ${type} application "${name}" (${id}) will be deleted, with its keys and sessions.`,
      { yes: flags.yes, answer: name },
    );
    // What was changed since it was shown is not deleted.
    await client.applications.deleteApplication({ id, ifMatch: version }, call);
    output.showValue({ id }, () => `"${visible(name)}" (${id}) is deleted.\n`);
  });
}

interface RotateFlags extends CallingFlags, NewKeyFlags {
  /** Milliseconds. */
  readonly grace?: number;
  readonly yes?: boolean;
}

export async function rotateKey(idOrName: string, flags: RotateFlags): Promise<void> {
  const { grace, yes } = flags;
  await withClient(flags, async (calling) => {
    const { client, call, output } = calling;
    const { id, name, version } = await findApplication(calling, idOrName);
    if (grace === undefined) {
      await confirm(`The key of "${name}" will stop working at once (--grace lets it go on).`, {
        yes,
      });
    }
    const gracePeriod = grace === undefined ? {} : { gracePeriod: durationFromMs(grace) };
    // What was changed since it was shown keeps its key.
    const request = { id, ifMatch: version, ...gracePeriod };
    await withNewKey(flags, output, () =>
      client.applications.regenerateApplicationKey(request, call),
    );
  });
}

export const disableApplication = (idOrName: string, flags: CallingFlags) =>
  switchApplication("disableApplication", idOrName, flags);

export const enableApplication = (idOrName: string, flags: CallingFlags) =>
  switchApplication("enableApplication", idOrName, flags);

async function switchApplication(
  method: "disableApplication" | "enableApplication",
  idOrName: string,
  flags: CallingFlags,
): Promise<void> {
  await withClient(flags, async (calling) => {
    const { client, call, output } = calling;
    const id = await findApplicationId(calling, idOrName);
    const after = await client.applications[method]({ id }, call);
    output.show(ApplicationSchema, after, () => `"${visible(after.name)}" is ${after.status}.\n`);
  });
}

interface UpdateFlags extends CallingFlags {
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

const changes = [
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
 * Changes what is said and nothing else. The service replaces the name and all
 * grants, so they are read before, and replaced only as they were read: nobody's
 * change is lost.
 */
export async function updateApplication(idOrName: string, flags: UpdateFlags): Promise<void> {
  if (changes.every((name) => flags[name] === undefined)) {
    throw new CommandFailure("There is nothing to change: say what, for example --name.", "usage");
  }
  const rules = flags.rules === undefined ? undefined : await readRules(flags.rules);
  await withClient(flags, async (calling) => {
    const { client, call, output } = calling;
    const before = await findApplication(calling, idOrName);
    const request = {
      id: before.id,
      name: flags.name ?? before.name,
      permissions: permissionsAfter(before, flags),
      rules: rules ?? before.rules,
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
    const after = await client.applications.updateApplication(request, call);
    output.show(ApplicationSchema, after, (look) => applicationText(after, look));
  });
}

function permissionsAfter({ permissions }: Application, flags: UpdateFlags): string[] {
  const { permission, addPermission = [], removePermission = [] } = flags;
  const all = new Set([...(permission ?? permissions), ...addPermission]);
  for (const removed of removePermission) {
    if (!all.delete(removed)) {
      throw new CommandFailure(`It does not have the permission ${removed}.`, "usage");
    }
  }
  return [...all];
}

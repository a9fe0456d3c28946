import {
  type Application,
  ApplicationSchema,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import { CommandFailure } from "../failure.js";
import { type CallingFlags, withClient } from "../with-client.js";
import { applicationText } from "./application-text.js";
import { findApplication } from "./find-application.js";
import { readRules } from "./rules-file.js";

interface Flags extends CallingFlags {
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
] as const satisfies readonly (keyof Flags)[];

/**
 * Changes what is said and nothing else. The service replaces the name and all
 * grants, so they are read before, and replaced only as they were read: nobody's
 * change is lost.
 */
export async function updateApplication(idOrName: string, flags: Flags): Promise<void> {
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

function permissionsAfter({ permissions }: Application, flags: Flags): string[] {
  const { permission, addPermission = [], removePermission = [] } = flags;
  const all = new Set([...(permission ?? permissions), ...addPermission]);
  for (const removed of removePermission) {
    if (!all.delete(removed)) {
      throw new CommandFailure(`It does not have the permission ${removed}.`, "usage");
    }
  }
  return [...all];
}

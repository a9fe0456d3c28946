import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { type CallingFlags, withClient } from "../with-client.js";
import { type NewKeyFlags, withNewKey } from "./new-key.js";
import { readRules } from "./rules-file.js";

interface Flags extends CallingFlags, NewKeyFlags {
  readonly type: string;
  readonly permission?: string[];
  readonly rules?: string;
  readonly expires?: Date;
  readonly allowedOrigin?: string[];
  readonly allowedCidr?: string[];
  readonly sessionQuota?: number;
}

export async function createApplication(name: string, flags: Flags): Promise<void> {
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

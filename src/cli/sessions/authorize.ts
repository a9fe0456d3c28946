import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { readRules } from "../apps/rules-file.js";
import { readSecret } from "../secret-input.js";
import { type CallingFlags, withClient } from "../with-client.js";

interface Flags extends CallingFlags {
  readonly nonceFile?: string;
  readonly permission?: string[];
  readonly rules?: string;
  readonly expires?: Date;
}

export async function authorizeSession(flags: Flags): Promise<void> {
  const { permission: permissions = [], expires } = flags;
  const rules = flags.rules === undefined ? [] : await readRules(flags.rules);
  const expiry = expires ? { expiresAt: timestampFromDate(expires) } : {};
  await withClient(flags, async ({ client, call, output }) => {
    const nonce = await readSecret({ noun: "the nonce", file: flags.nonceFile });
    await client.sessions.authorizeSession({ nonce, permissions, rules, ...expiry }, call);
    output.showValue({}, () => "The session is authorized, and its nonce is spent.\n");
  });
}

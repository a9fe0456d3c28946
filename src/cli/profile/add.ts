import { selfText } from "../access/whoami.js";
import { explainCall } from "../call-failure.js";
import { defaultUrl } from "../connection.js";
import { CommandFailure } from "../failure.js";
import { isLoopback } from "../loopback.js";
import { createOutput, type OutputFlags } from "../output.js";
import { type Profile, profilesPath, readProfiles, writeProfiles } from "../profiles.js";
import { readSecret } from "../secret-input.js";
import { createServiceClient } from "../service-client.js";

interface Flags extends OutputFlags {
  readonly url?: string;
  readonly keyFile?: string;
  readonly keyHeader?: string;
  readonly timeout: number;
  readonly replace?: boolean;
  readonly check: boolean;
}

/** Keeps a service and a key under a name, once the key has been seen to work. */
export async function addProfile(name: string, flags: Flags): Promise<void> {
  const { url = defaultUrl, keyHeader } = flags;
  const before = await readProfiles();
  if (before.byName.has(name) && !flags.replace) {
    throw new CommandFailure(
      `There is a profile "${name}" already.`,
      "conflict",
      "Say --replace to replace it.",
    );
  }
  const key = await readSecret({ noun: `the key for ${url}`, file: flags.keyFile });
  const profile = { url, key, keyHeader };
  const self = flags.check ? await askWhose(profile, flags) : undefined;
  const isFirst = before.byName.size === 0;
  const current = isFirst ? name : before.current;
  await writeProfiles({ current, byName: new Map(before.byName).set(name, profile) });

  const output = createOutput(flags);
  const facts = { name, url, current: current === name };
  output.showValue(facts, (look) => (self ? selfText(self, url, look) : ""));
  output.note(`The profile "${name}" is kept in ${profilesPath()}.`);
  output.note(
    current === name
      ? undefined
      : `Use it by --profile ${name}, or always: latchkey profile use ${name}`,
  );
  output.note(
    isOpen(url) ? "The key goes over the network unencrypted: https:// would hide it." : undefined,
  );
}

async function askWhose(profile: Profile, { timeout: timeoutMs }: Flags) {
  const client = createServiceClient(profile);
  try {
    return await client.access.whoAmI({}, { timeoutMs });
  } catch (error) {
    throw explainCall(error, profile.url);
  } finally {
    client.close();
  }
}

/** Whether others can read what is sent there. */
function isOpen(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === "http:" && !isLoopback(hostname);
}

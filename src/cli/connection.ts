import type { ClientEnvironment } from "./environment.js";
import { parseHeaderName, parseServiceUrl, parseText } from "./option-values.js";
import { defaultUrl, type NewConnectionFlags } from "./options.js";
import { getProfile, type Profile, type Profiles } from "./profiles-file.js";

/** The options of every command that calls the service. */
export interface ConnectionFlags extends NewConnectionFlags {
  readonly profile?: string;
}

export interface Connection {
  readonly url: string;
  readonly keyHeader: string | undefined;
  /** Absent if it comes from a file or a prompt. */
  readonly key: string | undefined;
  /** Where the key comes from, for example `LATCHKEY_KEY`. Absent if it was typed. */
  readonly keySource: string | undefined;
  /** The name of the profile that the key comes from. */
  readonly profile?: string | undefined;
  /** Whether SVC_API_KEY holds a different key, which is ignored in favor of the profile's. */
  readonly ignoresSvcApiKey?: boolean;
}

/**
 * Options override the environment, and the environment overrides the profile.
 * With --profile the environment is ignored. The key of a profile is sent only
 * to the URL of that profile. It overrides SVC_API_KEY, which is the variable of
 * programs that call the service.
 */
export function resolveConnection(
  flags: Omit<ConnectionFlags, "timeout">,
  environment: Omit<ClientEnvironment, "configFolder" | "colors">,
  profiles: Profiles,
): Connection {
  const usable = flags.profile === undefined ? environment : ({} as Partial<ClientEnvironment>);
  const profileName = flags.profile ?? environment.profile ?? profiles.current;
  const profile = profileFor(flags.profile ?? environment.profile, profiles);
  const fromVariable = <T>(name: string, parse: (text: string) => T, text: string | undefined) =>
    text === undefined ? undefined : parseText(name, parse, text);
  const url =
    flags.url ?? fromVariable("LATCHKEY_URL", parseServiceUrl, usable.url) ?? profile?.url;
  const keyHeader =
    flags.keyHeader ??
    fromVariable("LATCHKEY_KEY_HEADER", parseHeaderName, usable.keyHeader) ??
    profile?.keyHeader;
  const service = { url: url ?? defaultUrl, keyHeader };
  if (flags.keyFile !== undefined) {
    return { ...service, key: undefined, keySource: `--key-file ${flags.keyFile}` };
  }
  if (usable.key !== undefined) {
    return { ...service, key: usable.key, keySource: "LATCHKEY_KEY" };
  }
  if (profile && url === profile.url) {
    const { key } = profile;
    const ignoresSvcApiKey = (usable.svcApiKey ?? key) !== key;
    const keySource = `the profile "${profileName}"`;
    return { ...service, key, keySource, profile: profileName, ignoresSvcApiKey };
  }
  const { svcApiKey: key } = usable;
  return { ...service, key, keySource: key === undefined ? undefined : "SVC_API_KEY" };
}

function profileFor(name: string | undefined, profiles: Profiles): Profile | undefined {
  if (name !== undefined) {
    return getProfile(profiles, name);
  }
  return profiles.current === undefined ? undefined : profiles.byName.get(profiles.current);
}

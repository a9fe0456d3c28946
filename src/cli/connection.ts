import type { ClientEnvironment } from "./environment.js";
import { CommandFailure } from "./errors.js";
import { header, serviceUrl } from "./options.js";
import { type Profile, type Profiles, profileNamed } from "./profile/profiles.js";

/** The options of every command that calls a service. */
export interface ConnectionFlags {
  readonly url?: string;
  readonly profile?: string;
  readonly keyFile?: string;
  readonly keyHeader?: string;
  /** Milliseconds. */
  readonly timeout: number;
}

/** Where to call, and with what. */
export interface Connection {
  readonly url: string;
  readonly keyHeader: string | undefined;
  /** Absent where it is in a file, or has to be asked for. */
  readonly key: string | undefined;
}

export const defaultUrl = "http://localhost:8080";

/**
 * Finds out where to call. Options go before the environment and that before
 * the profile, but a profile that is named by an option goes before the
 * environment. The key of a profile is sent to the profile's address alone.
 */
export function chooseConnection(
  flags: Omit<ConnectionFlags, "timeout">,
  environment: Omit<ClientEnvironment, "configFolder" | "colours">,
  profiles: Profiles,
): Connection {
  const isNamed = flags.profile !== undefined;
  const ambient = isNamed ? ({} as Partial<ClientEnvironment>) : environment;
  const profile = profileFor(flags.profile ?? environment.profile, profiles);
  const url = flags.url ?? fromEnvironment("LATCHKEY_URL", serviceUrl, ambient.url) ?? profile?.url;
  const keyHeader =
    flags.keyHeader ??
    fromEnvironment("LATCHKEY_KEY_HEADER", header, ambient.keyHeader) ??
    profile?.keyHeader;
  const isOfProfile = url !== undefined && url === profile?.url;
  return {
    url: url ?? defaultUrl,
    keyHeader,
    key:
      flags.keyFile === undefined
        ? (ambient.key ?? (isOfProfile ? profile?.key : undefined))
        : undefined,
  };
}

function profileFor(name: string | undefined, profiles: Profiles): Profile | undefined {
  if (name !== undefined) {
    return profileNamed(profiles, name);
  }
  return profiles.current === undefined ? undefined : profiles.byName.get(profiles.current);
}

function fromEnvironment<T>(
  name: string,
  parse: (text: string) => T,
  text: string | undefined,
): T | undefined {
  try {
    return text === undefined ? undefined : parse(text);
  } catch (error) {
    throw new CommandFailure(`${name}: ${(error as Error).message}`, "usage");
  }
}

/** Whether a host is this machine. */
export function isLoopback(hostname: string): boolean {
  return /^(localhost|127(\.\d+){3}|\[?::1\]?)$/.test(hostname);
}

import type { ClientEnvironment } from "./environment.js";
import { CommandError } from "./errors.js";
import { header, serviceUrl } from "./options.js";
import { getProfile, type Profile, type Profiles } from "./profile/profiles.js";

/** The options of every command that calls the service. */
export interface ConnectionFlags {
  readonly url?: string;
  readonly profile?: string;
  readonly keyFile?: string;
  readonly keyHeader?: string;
  /** Milliseconds. */
  readonly timeout: number;
}

export interface Connection {
  readonly url: string;
  readonly keyHeader: string | undefined;
  /** Absent if it comes from a file or a prompt. */
  readonly key: string | undefined;
}

export const defaultUrl = "http://localhost:8080";

/**
 * Options override the environment, and the environment overrides the profile.
 * With --profile the environment is ignored. The key of a profile is sent only
 * to the URL of that profile.
 */
export function resolveConnection(
  flags: Omit<ConnectionFlags, "timeout">,
  environment: Omit<ClientEnvironment, "configFolder" | "colors">,
  profiles: Profiles,
): Connection {
  const usable = flags.profile === undefined ? environment : ({} as Partial<ClientEnvironment>);
  const profile = profileFor(flags.profile ?? environment.profile, profiles);
  const url = flags.url ?? parseVariable("LATCHKEY_URL", serviceUrl, usable.url) ?? profile?.url;
  const keyHeader =
    flags.keyHeader ??
    parseVariable("LATCHKEY_KEY_HEADER", header, usable.keyHeader) ??
    profile?.keyHeader;
  const isProfileUrl = url !== undefined && url === profile?.url;
  return {
    url: url ?? defaultUrl,
    keyHeader,
    key:
      flags.keyFile === undefined
        ? (usable.key ?? (isProfileUrl ? profile?.key : undefined))
        : undefined,
  };
}

function profileFor(name: string | undefined, profiles: Profiles): Profile | undefined {
  if (name !== undefined) {
    return getProfile(profiles, name);
  }
  return profiles.current === undefined ? undefined : profiles.byName.get(profiles.current);
}

function parseVariable<T>(
  name: string,
  parse: (text: string) => T,
  text: string | undefined,
): T | undefined {
  try {
    return text === undefined ? undefined : parse(text);
  } catch (error) {
    throw new CommandError(`${name}: ${(error as Error).message}`, "usage");
  }
}

export function isLoopback(hostname: string): boolean {
  return /^(localhost|127(\.\d+){3}|\[?::1\]?)$/.test(hostname);
}

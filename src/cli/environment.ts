import { homedir } from "node:os";
import { join } from "node:path";

/** What the environment says to the commands that call a service. Here alone they read it. */
export interface ClientEnvironment {
  readonly url: string | undefined;
  readonly key: string | undefined;
  readonly keyHeader: string | undefined;
  readonly profile: string | undefined;
  /** The folder of what is kept for this user. */
  readonly configFolder: string;
  /** Whether colours are wished for, where that is said. */
  readonly colours: boolean | undefined;
}

export function readClientEnvironment(
  environment: Readonly<NodeJS.Dict<string>> = process.env,
): ClientEnvironment {
  const read = (name: string) => environment[name] || undefined;
  return {
    url: read("LATCHKEY_URL"),
    // The examples keep the key under the name of the header that carries it.
    key: read("LATCHKEY_KEY") ?? read("SVC_API_KEY"),
    keyHeader: read("LATCHKEY_KEY_HEADER"),
    profile: read("LATCHKEY_PROFILE"),
    configFolder: join(read("XDG_CONFIG_HOME") ?? join(homedir(), ".config"), "latchkey"),
    colours: wishForColours(environment),
  };
}

export function wishForColours({ FORCE_COLOR, NO_COLOR, TERM }: Readonly<NodeJS.Dict<string>>) {
  if (FORCE_COLOR !== undefined) {
    return FORCE_COLOR !== "0" && FORCE_COLOR !== "false";
  }
  return NO_COLOR || TERM === "dumb" ? false : undefined;
}

import { homedir } from "node:os";
import { join } from "node:path";

/** The environment variables of the commands that call the service. No other module reads them. */
export interface ClientEnvironment {
  readonly url: string | undefined;
  readonly key: string | undefined;
  /** The key in the variable that the examples of the documentation use. */
  readonly svcApiKey: string | undefined;
  readonly keyHeader: string | undefined;
  readonly profile: string | undefined;
  /** The folder of this user's profiles. */
  readonly configFolder: string;
  /** Whether to use colors; `undefined` to use them on a terminal only. */
  readonly colors: boolean | undefined;
}

export function readClientEnvironment(
  environment: Readonly<NodeJS.Dict<string>> = process.env,
): ClientEnvironment {
  const read = (name: string) => environment[name] || undefined;
  return {
    url: read("LATCHKEY_URL"),
    key: read("LATCHKEY_KEY"),
    svcApiKey: read("SVC_API_KEY"),
    keyHeader: read("LATCHKEY_KEY_HEADER"),
    profile: read("LATCHKEY_PROFILE"),
    configFolder: join(read("XDG_CONFIG_HOME") ?? join(homedir(), ".config"), "latchkey"),
    colors: colorPreference(environment),
  };
}

function colorPreference({ FORCE_COLOR, NO_COLOR, TERM }: Readonly<NodeJS.Dict<string>>) {
  if (FORCE_COLOR !== undefined) {
    return FORCE_COLOR !== "0" && FORCE_COLOR !== "false";
  }
  return NO_COLOR || TERM === "dumb" ? false : undefined;
}

import type { CallOptions } from "@connectrpc/connect";
import { explainCall } from "./call-failure.js";
import { readClientEnvironment } from "./client-environment.js";
import { type Connection, type ConnectionFlags, chooseConnection } from "./connection.js";
import { CommandFailure } from "./failure.js";
import { createOutput, type Output, type OutputFlags } from "./output.js";
import { readProfiles } from "./profiles.js";
import { canAsk } from "./prompt.js";
import { readSecret } from "./secret-input.js";
import { createServiceClient, type ServiceClient } from "./service-client.js";

/** What a command works with that calls a service. */
export interface Calling {
  readonly client: ServiceClient;
  /** Goes with each call. */
  readonly call: CallOptions;
  readonly output: Output;
  readonly connection: Connection & { readonly key: string };
}

export type CallingFlags = ConnectionFlags & OutputFlags;

/** Runs a command that calls a service, and tells in its words what was refused. */
export async function withClient(
  flags: CallingFlags,
  use: (calling: Calling) => Promise<void>,
): Promise<void> {
  const connection = await connectionFor(flags);
  const client = createServiceClient(connection);
  const call = { timeoutMs: flags.timeout };
  try {
    await use({ client, call, connection, output: createOutput(flags) });
  } catch (error) {
    throw explainCall(error, connection.url);
  } finally {
    client.close();
  }
}

async function connectionFor(flags: CallingFlags): Promise<Calling["connection"]> {
  const chosen = chooseConnection(flags, readClientEnvironment(), await readProfiles());
  return { ...chosen, key: chosen.key ?? (await readOwnKey(flags, chosen.url)) };
}

async function readOwnKey({ keyFile }: ConnectionFlags, url: string): Promise<string> {
  if (keyFile === undefined && !canAsk()) {
    throw new CommandFailure(
      `There is no key to call ${url} with.`,
      "refused",
      "Give one by --key-file FILE (- for stdin), LATCHKEY_KEY, or latchkey profile add NAME. " +
        "The key of a profile is sent to its own address only.",
    );
  }
  return readSecret({ noun: `the key for ${url}`, file: keyFile });
}

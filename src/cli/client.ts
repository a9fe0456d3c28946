import { Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import type { CallOptions } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { createClientOn, type LatchkeyClient } from "../client/client.js";
import { type ClientOptions, retryLost, sendKey } from "../contract/client-interceptors.js";
import { explainCall } from "./call-errors.js";
import { type Connection, type ConnectionFlags, chooseConnection } from "./connection.js";
import { readClientEnvironment } from "./environment.js";
import { CommandFailure } from "./errors.js";
import { createOutput, type Output, type OutputFlags } from "./output.js";
import { readProfiles } from "./profile/profiles.js";
import { canAsk, readSecret } from "./prompt.js";

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

interface ServiceClient extends LatchkeyClient {
  /** Ends its connections, and the calls under way with them. */
  close(): void;
}

/** Creates a client that speaks Connect over HTTP/1.1, which every proxy lets through. */
export function createServiceClient(options: ClientOptions): ServiceClient {
  const isSecure = new URL(options.url).protocol === "https:";
  const agent = new (isSecure ? HttpsAgent : HttpAgent)({ keepAlive: true });
  const transport = createConnectTransport({
    baseUrl: options.url,
    httpVersion: "1.1",
    interceptors: [retryLost(), sendKey(options)],
    nodeOptions: { agent },
  });
  return { ...createClientOn(transport), close: () => agent.destroy() };
}

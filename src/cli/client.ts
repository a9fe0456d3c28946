import { Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import type { CallOptions } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { createClientOn, type LatchkeyClient } from "../client/client.js";
import { type ClientOptions, retryCalls, sendKey } from "../contract/client-interceptors.js";
import { toCommandError } from "./call-errors.js";
import { type Connection, type ConnectionFlags, resolveConnection } from "./connection.js";
import { readClientEnvironment } from "./environment.js";
import { CommandError } from "./errors.js";
import { createOutput, type Output, type OutputFlags } from "./output.js";
import { readProfiles } from "./profile/profiles.js";
import { isInteractive, readSecret } from "./prompt.js";

/** The client and output of a command that calls the service. */
export interface ClientContext {
  readonly client: ServiceClient;
  /** The options of every call. */
  readonly call: CallOptions;
  readonly output: Output;
  readonly connection: Connection & { readonly key: string };
}

export type ClientFlags = ConnectionFlags & OutputFlags;

/** Runs a command with a client. Errors of calls name the options of the command. */
export async function withClient(
  flags: ClientFlags,
  use: (context: ClientContext) => Promise<void>,
): Promise<void> {
  const connection = await connectionFor(flags);
  const client = createServiceClient(connection);
  const call = { timeoutMs: flags.timeout };
  try {
    await use({ client, call, connection, output: createOutput(flags) });
  } catch (error) {
    throw toCommandError(error, connection.url, flags);
  } finally {
    client.close();
  }
}

async function connectionFor(flags: ClientFlags): Promise<ClientContext["connection"]> {
  const resolved = resolveConnection(flags, readClientEnvironment(), await readProfiles());
  return { ...resolved, key: resolved.key ?? (await readCallerKey(flags, resolved.url)) };
}

async function readCallerKey({ keyFile }: ConnectionFlags, url: string): Promise<string> {
  if (keyFile === undefined && !isInteractive()) {
    throw new CommandError(
      `No key for ${url}.`,
      "unauthorized",
      "Pass one with --key-file FILE (- for stdin), LATCHKEY_KEY, or latchkey profile add NAME. " +
        "The key of a profile is sent only to the URL of that profile.",
    );
  }
  return readSecret({ noun: `key for ${url}`, file: keyFile });
}

interface ServiceClient extends LatchkeyClient {
  /** Closes its connections and aborts pending calls. */
  close(): void;
}

/** Creates a client for Connect over HTTP/1.1, which every proxy supports. */
export function createServiceClient(options: ClientOptions): ServiceClient {
  const isSecure = new URL(options.url).protocol === "https:";
  const agent = new (isSecure ? HttpsAgent : HttpAgent)({ keepAlive: true });
  const transport = createConnectTransport({
    baseUrl: options.url,
    httpVersion: "1.1",
    interceptors: [retryCalls(), sendKey(options)],
    nodeOptions: { agent },
  });
  return { ...createClientOn(transport), close: () => agent.destroy() };
}

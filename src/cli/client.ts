import { Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import type { CallOptions } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import type { WhoAmIResponse } from "../../gen/latchkey/v1/access_service_pb.js";
import { createClientOn, type LatchkeyClient } from "../client/client.js";
import { type ClientOptions, retryCalls, sendKey } from "../contract/client-interceptors.js";
import { type CalledService, toCommandError } from "./call-errors.js";
import { type Connection, type ConnectionFlags, resolveConnection } from "./connection.js";
import { readClientEnvironment } from "./environment.js";
import { CommandError, latchkey } from "./errors.js";
import { createOutput, type Output, type OutputFlags } from "./output.js";
import { readProfiles } from "./profiles-file.js";
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
  const output = createOutput(flags);
  if (connection.ignoresSvcApiKey) {
    output.note(`Using the key of ${connection.keySource}, not SVC_API_KEY.`);
  }
  await callService(connection, flags, (context) => use({ ...context, connection, output }));
}

/** The client of a service, and the options of every call. */
export type ServiceContext = Pick<ClientContext, "client" | "call">;

/** Runs calls with a client. Errors name the given options. */
export async function callService<T>(
  options: ClientOptions & CalledService,
  flags: Pick<ConnectionFlags, "timeout">,
  use: (context: ServiceContext) => Promise<T>,
): Promise<T> {
  const client = createServiceClient(options);
  try {
    return await use({ client, call: { timeoutMs: flags.timeout } });
  } catch (error) {
    throw toCommandError(error, options, flags);
  } finally {
    client.close();
  }
}

async function connectionFor(flags: ClientFlags): Promise<ClientContext["connection"]> {
  const resolved = resolveConnection(flags, readClientEnvironment(), await readProfiles());
  return { ...resolved, key: resolved.key ?? (await readCallerKey(flags, resolved)) };
}

async function readCallerKey(flags: ConnectionFlags, service: Connection): Promise<string> {
  if (flags.keyFile === undefined && !isInteractive()) {
    throw new CommandError(
      `No key for ${service.url}.`,
      "unauthorized",
      `Pass one with --key-file FILE (- for stdin), LATCHKEY_KEY, or ${latchkey("profile add NAME")}. ` +
        "The key of a profile is sent only to the URL of that profile.",
    );
  }
  return readKey(service, flags);
}

type Service = Pick<ClientOptions, "url" | "keyHeader">;
interface KeyFlags extends Pick<ConnectionFlags, "keyFile" | "timeout"> {
  /** Whether the service must respond before the prompt. */
  readonly check?: boolean;
}

/** Reads the key for a service from a file, a prompt or stdin. */
export async function readKey(service: Service, flags: KeyFlags): Promise<string> {
  const { keyFile, timeout, check = true } = flags;
  if (check && keyFile === undefined && isInteractive()) {
    await verifyKey({ ...service, key: "" }, timeout).catch((error) => {
      if (!(error instanceof CommandError && error.exit === "unauthorized")) {
        throw error;
      }
    });
  }
  return readSecret({ noun: `key for ${service.url}`, file: keyFile });
}

/** Returns the owner of a key. Throws if the service does not accept it. */
export function verifyKey(options: ClientOptions, timeout: number): Promise<WhoAmIResponse> {
  return callService(options, { timeout }, ({ client, call }) => client.access.whoAmI({}, call));
}

/** More than a page of 100 applications, each as large as a request may be by default. */
const maxResponseBytes = 128 * 1024 * 1024;

interface ServiceClient extends LatchkeyClient {
  /** Closes its connections and aborts pending calls. */
  close(): void;
}

/** Creates a client for Connect over HTTP/1.1, which every proxy supports. */
function createServiceClient(options: ClientOptions): ServiceClient {
  const isSecure = new URL(options.url).protocol === "https:";
  const agent = new (isSecure ? HttpsAgent : HttpAgent)({ keepAlive: true });
  const transport = createConnectTransport({
    baseUrl: options.url,
    httpVersion: "1.1",
    interceptors: [retryCalls(), sendKey(options)],
    nodeOptions: { agent },
    readMaxBytes: maxResponseBytes,
  });
  return { ...createClientOn(transport), close: () => agent.destroy() };
}

import { Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import { type CallOptions, Code, ConnectError } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import type { WhoAmIResponse } from "../../gen/latchkey/v1/access_service_pb.js";
import { createClientOn, type LatchkeyClient } from "../client/client.js";
import { type ClientOptions, retryCalls, sendKey } from "../contract/client-interceptors.js";
import { problemOf } from "../contract/problem-report.js";
import { type ProblemCode, problemCatalogue } from "../contract/problems.js";
import {
  type Connection,
  type ConnectionFlags,
  readClientEnvironment,
  readProfiles,
  resolveConnection,
} from "./connection.js";
import { CommandError, type ExitName } from "./errors.js";
import { createOutput, type Output, type OutputFlags } from "./output.js";
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
export type CallContext = Pick<ClientContext, "client" | "call">;

/** Runs calls with a client. Errors name the given options. */
export async function callService<T>(
  options: ClientOptions & Called,
  flags: Pick<ConnectionFlags, "timeout">,
  use: (context: CallContext) => Promise<T>,
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
      "Pass one with --key-file FILE (- for stdin), LATCHKEY_KEY, or latchkey profile add NAME. " +
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
  });
  return { ...createClientOn(transport), close: () => agent.destroy() };
}

const exitByStatus: Readonly<Record<number, ExitName>> = {
  400: "usage",
  401: "unauthorized",
  403: "unauthorized",
  404: "notFound",
  408: "unreachable",
  409: "conflict",
  412: "conflict",
  422: "usage",
  429: "unreachable",
  503: "unreachable",
  504: "unreachable",
};

function hintFor(code: string, { keySource }: Called): string | undefined {
  switch (code) {
    case "unauthenticated":
      return keySource === undefined
        ? "Copy the whole key again, or use another one."
        : "Pass another key with --key-file FILE, LATCHKEY_KEY, or latchkey profile add NAME.";
    case "permission_denied":
      return keySource === undefined
        ? undefined
        : `The call was made with the key from ${keySource}.`;
    case "version_mismatch":
      return "Check the current state, then run the command again.";
    default:
      return undefined;
  }
}

/** The service that was called. */
type Called = Pick<Connection, "url"> & Partial<Pick<Connection, "keySource">>;

/** Turns a failed call into an error for the user. Other errors are returned unchanged. */
export function toCommandError(thrown: unknown, called: Called, flags: object = {}): unknown {
  if (!(thrown instanceof ConnectError)) {
    return thrown;
  }
  const { code, detail, errors, requestId } = problemOf(thrown);
  if (code === undefined) {
    return toConnectionError(thrown, called.url);
  }
  const fields = Object.entries(errors).flatMap(([field, messages]) =>
    messages.map((message) => (field ? `${optionFor(field, flags)}: ${message}` : message)),
  );
  const request = requestId ? ` (request ${requestId})` : "";
  const message = code === "unauthenticated" ? describeRefusedKey(called) : detail;
  const lines = fields.length > 0 ? fields : [message];
  const { status = 500 } = problemCatalogue[code as ProblemCode] ?? {};
  return new CommandError(
    `${lines.join("\n")}${request}`,
    exitByStatus[status] ?? "failed",
    hintFor(code, called),
  );
}

function describeRefusedKey({ url, keySource }: Called): string {
  const source = keySource === undefined ? "this key" : `the key from ${keySource}`;
  return `${url} does not accept ${source}. It may be mistyped, replaced, expired, disabled or deleted.`;
}

/** The options that set a field of a request, where their names differ. */
const optionsByField: Readonly<Record<string, readonly string[]>> = {
  permissions: ["permission", "addPermission"],
  expires_at: ["expires"],
  allowed_origins: ["allowedOrigin"],
  allowed_cidrs: ["allowedCidr"],
  grace_period: ["grace"],
  q: ["search"],
  name_prefix: ["name"],
  last_used_before: ["unusedSince"],
  application_id: ["application"],
  nonce: ["nonceFile"],
  key: ["subjectFile"],
};

/** The option that set a field, for example `--permission X` for `permissions[0]`. */
function optionFor(path: string, flags: object): string {
  const [, field = path, index, rest = ""] =
    /^(?:token\.)?(\w+)(?:\[(\d+|".*")\])?(\..*)?$/s.exec(path) ?? [];
  const given = new Map(Object.entries(flags));
  const name = (optionsByField[field] ?? [toCamelCase(field)]).find((it) => given.has(it));
  if (name === undefined) {
    return path;
  }
  const option = `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
  const value = given.get(name);
  if (Array.isArray(value) && typeof value[Number(index)] === "string") {
    return `${option} ${value[Number(index)]}`;
  }
  // A file with many rules, or one of several pairs: the path shows which one.
  return index === undefined && rest === "" ? option : `${option}: ${path}`;
}

function toCamelCase(field: string): string {
  return field.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** Explains calls without a response from Latchkey. */
function toConnectionError(error: ConnectError, url: string): CommandError {
  switch (error.code) {
    case Code.DeadlineExceeded:
      return new CommandError(
        `${url} did not respond in time.`,
        "unreachable",
        "Raise --timeout, or check the log of the service.",
      );
    case Code.Unauthenticated:
      return new CommandError(error.rawMessage, "unauthorized");
    default:
      return new CommandError(
        error.rawMessage.includes("ECONNREFUSED")
          ? `${url} is unreachable: no service is listening there.`
          : `${url} is unreachable or is not a Latchkey service: ${error.rawMessage}`,
        "unreachable",
        "Start the service with latchkey serve, or pass another URL with --url, LATCHKEY_URL or a profile.",
      );
  }
}

import { Code, ConnectError } from "@connectrpc/connect";
import { problemOf } from "../contract/problem-report.js";
import { type ProblemCode, problemCatalogue } from "../contract/problems.js";
import { quoteIfNeeded } from "../contract/samples/curl.js";
import type { Connection } from "./connection.js";
import { CommandError, type ExitName, latchkey } from "./errors.js";

/** The service that was called. */
export type CalledService = Pick<Connection, "url"> &
  Partial<Pick<Connection, "keySource" | "profile" | "keyHeader">>;

/** Turns a failed call into an error for the user. Other errors are returned unchanged. */
export function toCommandError(
  thrown: unknown,
  called: CalledService,
  flags: object = {},
): unknown {
  if (!(thrown instanceof ConnectError)) {
    return thrown;
  }
  const { code, detail, errors, requestId } = problemOf(thrown);
  if (code === undefined) {
    return toConnectionError(thrown, called.url);
  }
  const fields = Object.entries(errors).flatMap(([field, messages]) =>
    messages.map((message) => (field ? `${optionOfField(field, flags)}: ${message}` : message)),
  );
  const request = requestId ? ` (request ${requestId})` : "";
  const message = code === "unauthenticated" ? describeRefusedKey(called, detail) : detail;
  const lines = fields.length > 0 ? fields : [message];
  const { status = 500 } = problemCatalogue[code as ProblemCode] ?? {};
  return new CommandError(
    `${lines.join("\n")}${request}`,
    exitByStatus[status] ?? "failed",
    hintFor(code, called),
  );
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

function hintFor(code: string, called: CalledService): string | undefined {
  const { keySource, profile } = called;
  switch (code) {
    case "unauthenticated":
      if (keySource === undefined) {
        return "Copy the whole key again, or use another one.";
      }
      return profile === undefined
        ? `Pass another key with --key-file FILE, LATCHKEY_KEY, or ${latchkey("profile add NAME")}.`
        : `Save another key: ${replaceProfileCommand(profile, called)}`;
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

/** Prompts for the new key of a profile. */
export function replaceProfileCommand(name: string, { url, keyHeader }: CalledService): string {
  const header = keyHeader === undefined ? "" : ` --key-header ${quoteIfNeeded(keyHeader)}`;
  return latchkey(`profile add ${name} --replace --url ${quoteIfNeeded(url)}${header}`);
}

/**
 * The service says what is wrong: for example no key, a wrong checksum, or a key that is no longer
 * valid. Where it then says which header to send is of no use on a command line.
 */
function describeRefusedKey({ url, keySource }: CalledService, detail: string): string {
  const source = keySource === undefined ? "this key" : `the key from ${keySource}`;
  return `${url} does not accept ${source}: ${detail.replace(/ Send the key of .*$/s, "")}`;
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
  key: ["principalFile"],
};

/** The option that set a field, for example `--permission X` for `permissions[0]`. */
function optionOfField(path: string, flags: object): string {
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
      if (error.rawMessage.includes("wrong version number")) {
        return new CommandError(
          `${url} does not use TLS: pass the URL with http instead of https.`,
          "unreachable",
        );
      }
      if (error.rawMessage.includes("readMaxBytes")) {
        return new CommandError(`${url} sent a response that is too large.`);
      }
      return describeUnreachable(error, url);
  }
}

function describeUnreachable({ rawMessage }: ConnectError, url: string): CommandError {
  const anotherUrl = "another URL with --url, LATCHKEY_URL or a profile.";
  const start = `Start the service with ${latchkey("serve")}, or pass ${anotherUrl}`;
  if (rawMessage.includes("ECONNREFUSED")) {
    return unreachable(`${url} is unreachable: no service is listening there.`, start);
  }
  if (/ENOTFOUND|EAI_AGAIN/.test(rawMessage)) {
    return unreachable(`${url} is unreachable: the host was not found.`, `Pass ${anotherUrl}`);
  }
  if (/EPIPE|ECONNRESET|socket hang up/.test(rawMessage)) {
    return unreachable(`${url} closed the connection, or is not a Latchkey service.`, start);
  }
  if (foreignResponse.test(rawMessage)) {
    return unreachable(`${url} is not a Latchkey service.`, `Pass ${anotherUrl}`);
  }
  return unreachable(`${url} is unreachable or is not a Latchkey service: ${rawMessage}`, start);
}

/** How the transport describes responses of other servers. A proxy may return the excluded statuses. */
const foreignResponse = /^(HTTP (?!408|429|50[0234])|unsupported content type|Parse Error)/;

function unreachable(message: string, hint: string): CommandError {
  return new CommandError(message, "unreachable", hint);
}

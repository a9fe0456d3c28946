import { mkdtempSync, rmSync } from "node:fs";
import { STATUS_CODES } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { readSettings } from "../config/settings.js";
import { defaultKeyHeader } from "../contract/headers.js";
import { parseKey } from "../contract/key-format.js";
import { json, printValue } from "../contract/samples/call.js";
import { waitForStopSignal } from "../lib/stop-signal.js";
import { serve } from "../run-service.js";
import { createLogger } from "../telemetry/log.js";
import { CommandError, exitCodes, fileReason, latchkey } from "./errors.js";
import { createOutput, type Display, shortenKey } from "./output.js";
import { wrapText } from "./text.js";

/** Runs a service in a temporary folder and shows a session from start to end. */
export async function demoCommand(): Promise<void> {
  const { display } = createOutput({});
  const interruption = new AbortController();
  const interrupted = "Interrupted. The temporary service is removed.";
  waitForStopSignal().then(() => interruption.abort(new CommandError(interrupted, "interrupted")));
  const folder = createTemporaryFolder();
  // Runs even if stdout was closed.
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  // A closed terminal.
  process.once("SIGHUP", () => process.exit(exitCodes.interrupted.code));
  await serve({
    settings: readSettings({
      HOST: "127.0.0.1",
      PORT: "0",
      WORKERS: "1",
      DATA_DIR: folder,
      CONSOLE: "off",
      METRICS: "off",
      SHUTDOWN_GRACE: "1s",
    }),
    log: createLogger("silent", { write() {} }),
    handlesFirstStart: true,
    async runUntilStopped({ address, first }) {
      const url = `http://127.0.0.1:${address.port}`;
      print(`A temporary service runs at ${url}.`);
      print(wrap("A token is a data item that your backend protects, such as a card number."));
      await showSession(createCaller(url, display, interruption.signal), first?.key ?? "");
    },
  });
  const done = "Done. Each step went as expected. The temporary service is removed.";
  const next = `Next: run your own with ${latchkey("serve")}, then connect with ${latchkey("init")}.`;
  print(`\n${display.colors.good(wrap(done))}\n${wrap(next)}`);

  function wrap(text: string): string {
    return wrapForDisplay(text, display);
  }
}

function createTemporaryFolder(): string {
  try {
    return mkdtempSync(join(tmpdir(), "latchkey-demo-"));
  } catch (error) {
    const reason = fileReason(error as Error);
    throw new CommandError(`Cannot create a temporary folder in ${tmpdir()}: ${reason}`);
  }
}

/** Breaks text into lines of the width of the terminal, all but the first of which are indented. */
function wrapForDisplay(text: string, { width = Number.POSITIVE_INFINITY }: Display, indent = "") {
  return wrapText(text, width - indent.length).join(`\n${indent}`);
}

/** The life of a session. Each step throws if its response is not the expected one. */
async function showSession(call: CallStep, adminKey: string): Promise<void> {
  const backend = await call({
    title: "Create an application for your backend. Its private key stays secret.",
    as: ["administrator", adminKey],
    request: ["POST", "/applications"],
    body: { name: "Backend", type: "private", permissions: ["token:read", "access:check"] },
    expected: 201,
    shown: ["key"],
  });
  const shop = await call({
    title: "Create one for the web shop. Everybody can read its public key.",
    as: ["administrator", adminKey],
    request: ["POST", "/applications"],
    body: { name: "Web shop", type: "public", permissions: ["token:create"] },
    expected: 201,
    shown: ["key"],
  });
  const session = await call({
    title: "A customer opens the shop. The page opens a session.",
    as: ["web shop", shop.key],
    request: ["POST", "/sessions"],
    expected: 201,
    shown: ["session_key", "nonce"],
  });
  await call({
    title: "The session key is useless until your backend authorizes it.",
    as: ["session", session.session_key],
    request: ["GET", "/applications/key"],
    expected: 403,
    fields: { code: "permission_denied" },
  });
  const authorize = {
    as: ["backend", backend.key],
    request: ["POST", "/sessions/authorize"],
    body: { nonce: session.nonce, permissions: ["token:read"] },
  } as const;
  await call({
    title: "The page sends the nonce to your backend, which authorizes the session.",
    ...authorize,
    expected: 204,
  });
  await call({
    title: "Your backend checks the session: it may read a card number, masked.",
    as: ["backend", backend.key],
    request: ["POST", "/access/check"],
    body: {
      key: session.session_key,
      permission: "token:read",
      token: { container: "/cards/" },
    },
    expected: 200,
    fields: { allowed: true, transform: "mask" },
  });
  await call({
    title: "A nonce works once. Whoever finds it later gets nothing.",
    ...authorize,
    expected: 409,
    fields: { code: "nonce_used" },
  });
  await call({
    title: "The customer signs out. The session is revoked.",
    as: ["administrator", adminKey],
    request: ["DELETE", `/sessions/${session.id}`],
    expected: 204,
  });
  await call({
    title: "Its key is refused from now on.",
    as: ["session", session.session_key],
    request: ["GET", "/whoami"],
    expected: 401,
    fields: { code: "unauthenticated" },
  });
}

interface Step {
  /** Describes the step and its reason. */
  readonly title: string;
  /** Who calls, and with which key. */
  readonly as: readonly [who: string, key: string];
  readonly request: readonly [method: string, path: string];
  readonly body?: Readonly<Record<string, unknown>>;
  /** The status that the step must have. */
  readonly expected: number;
  /** The fields that the response must have. */
  readonly fields?: Readonly<Record<string, unknown>>;
  /** Other fields to show. */
  readonly shown?: readonly string[];
}

/** The fields of responses that later steps use. */
type Response = Readonly<Record<"id" | "key" | "session_key" | "nonce", string>>;
type CallStep = (step: Step) => Promise<Response>;

const indent = "   ";

/** Numbers the steps, and shows each call with its response, until the signal aborts. */
function createCaller(url: string, display: Display, signal: AbortSignal): CallStep {
  const { bold, dim, good, bad } = display.colors;
  let number = 0;
  return async (step) => {
    signal.throwIfAborted();
    const [who, key] = step.as;
    const [method, path] = step.request;
    print(`\n${++number}. ${bold(wrapForDisplay(step.title, display, indent))}`);
    print(`${indent}→ ${method} ${path}`);
    print(dim(`${indent}  ${defaultKeyHeader}: ${shortenKey(key)}  (${who})`));
    printFields(step.body);
    const { status, body } = await send(url, step, signal);
    const { expected, fields = {}, shown = [] } = step;
    const name = `${status} ${STATUS_CODES[status]}`;
    if (status !== expected || !isDeepStrictEqual(pick(body, Object.keys(fields)), fields)) {
      print(`${indent}← ${bad(name)}`);
      printFields(body);
      throw new CommandError(
        `Step ${number} did not go as expected.`,
        "failed",
        "This is a bug. Open an issue in the repository of Latchkey, with the output above.",
      );
    }
    print(`${indent}← ${good(name)}${status >= 400 ? ", as expected" : ""}`);
    printFields(pick(body, [...Object.keys(fields), ...shown]));
    return body;
  };
}

async function send(
  url: string,
  { as: [, key], request: [method, path], body }: Step,
  signal: AbortSignal,
) {
  const response = await fetch(url + path, {
    method,
    headers: { [defaultKeyHeader]: key, ...(body && { "Content-Type": "application/json" }) },
    body: body ? JSON.stringify(body) : null,
    signal,
  });
  const text = await response.text();
  return { status: response.status, body: (text ? JSON.parse(text) : {}) as Response };
}

function pick(body: object, names: readonly string[]): object {
  return Object.fromEntries(Object.entries(body).filter(([name]) => names.includes(name)));
}

/** Prints fields as JSON, with shortened keys. */
function printFields(fields: object = {}): void {
  if (Object.keys(fields).length > 0) {
    const shortened = JSON.parse(JSON.stringify(fields), (_, value) =>
      typeof value === "string" && parseKey(value) ? shortenKey(value) : value,
    );
    print(`${indent}  ${printValue(shortened, json, `${indent}  `)}`);
  }
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

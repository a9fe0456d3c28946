import { readFile } from "node:fs/promises";
import { request as plainRequest } from "node:http";
import { type RequestOptions, request as secureRequest } from "node:https";
import { createRequire } from "node:module";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import type { Settings } from "../../config/settings.js";
import { type Finding, fail, ok, warn } from "./finding.js";

/** Whether this Node is one that the package is made for. */
export function checkNode(): Finding {
  const { engines } = createRequire(import.meta.url)("latchkey/package.json");
  const wanted: string = engines.node.replace(">=", "");
  const present = process.versions.node;
  return isAtLeast(present, wanted)
    ? ok("node", `version ${present}`)
    : fail("node", `version ${present} is too old`, `Run it with Node.js ${wanted} or newer.`);
}

/** What is open beside the connections of callers: the store, logs, listeners. */
const otherFiles = 200;

/** Whether the system lets a process have as many connections as the settings do. Only Linux tells. */
export async function checkOpenFiles({ limits }: Settings): Promise<Finding[]> {
  const text = await readFile("/proc/self/limits", "utf8").catch(() => "");
  const [, most] = /^Max open files\s+(\d+)/m.exec(text) ?? [];
  if (most === undefined) {
    return [];
  }
  const { connections } = limits;
  return [
    Number(most) >= connections + otherFiles
      ? ok("open files", `${most} are allowed`)
      : warn(
          "open files",
          `${most} are allowed, too few for CONNECTION_LIMIT=${connections}`,
          `Raise the limit (ulimit -n ${connections + otherFiles}), or lower CONNECTION_LIMIT.`,
        ),
  ];
}

/** Whether a version, of numbers joined by dots, is another one or newer. */
export function isAtLeast(present: string, wanted: string): boolean {
  const [have, want] = [present, wanted].map((version) => version.split(".").map(Number));
  for (const [place, number] of (want ?? []).entries()) {
    const difference = (have?.[place] ?? 0) - number;
    if (difference !== 0) {
      return difference > 0;
    }
  }
  return true;
}

/** Milliseconds. */
const patience = 3_000;

/** Whether something answers where the service listens, or is to listen. */
export async function checkPort({ host, port, tls }: Settings): Promise<Finding> {
  if (port === 0) {
    return ok("port", "any that is free");
  }
  const place = host === undefined || host === "0.0.0.0" || host === "::" ? "127.0.0.1" : host;
  if (!(await isTaken(place, port))) {
    return ok("port", `nothing answers at ${place}:${port}: the service does not run, and could`);
  }
  const ready = await askWhetherReady(place, port, tls !== undefined).catch(() => undefined);
  if (ready === undefined) {
    return fail(
      "port",
      `${place}:${port} is taken by what does not answer as Latchkey does`,
      "Stop it or set PORT to another port; where it is Latchkey, let TLS_CERT be set here as there.",
    );
  }
  return ready
    ? ok("port", `a service answers at ${place}:${port}, and is ready`)
    : fail("port", `a service answers at ${place}:${port} and is not ready`, "See to its store.");
}

function isTaken(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: patience });
    const end = (isTaken: boolean) => {
      socket.destroy();
      resolve(isTaken);
    };
    socket.once("connect", () => end(true));
    socket.once("error", () => end(false));
    socket.once("timeout", () => end(false));
  });
}

/** Whether the service there is ready; `undefined` where it is another program. */
async function askWhetherReady(
  host: string,
  port: number,
  isSecure: boolean,
): Promise<boolean | undefined> {
  // Whether its certificate is one to trust is not the question here.
  const options = { host, port, path: "/readyz", timeout: patience, rejectUnauthorized: false };
  const { status, type } = JSON.parse(await readAnswer(options, isSecure));
  if (status === "ready") {
    return true;
  }
  return String(type).startsWith("urn:latchkey:") ? false : undefined;
}

function readAnswer(options: RequestOptions, isSecure: boolean): Promise<string> {
  return new Promise((resolve, reject) => {
    const request = (isSecure ? secureRequest : plainRequest)(options, (response) => {
      text(response).then(resolve, reject);
    });
    request.on("error", reject);
    request.on("timeout", () => request.destroy(new Error("It does not answer.")));
    request.end();
  });
}

import { readFile } from "node:fs/promises";
import { request as plainRequest } from "node:http";
import { type RequestOptions, request as secureRequest } from "node:https";
import { createRequire } from "node:module";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import type { Settings } from "../../config/settings.js";
import { problemUri } from "../../contract/problems.js";
import { formatHostPort } from "../../lib/networks.js";
import { type Finding, fail, ok, warn } from "./report.js";

export function checkNode(): Finding {
  const { engines } = createRequire(import.meta.url)("latchkey/package.json");
  const required: string = engines.node.replace(">=", "");
  const current = process.versions.node;
  return isAtLeast(current, required)
    ? ok("node", `version ${current}`)
    : fail("node", `version ${current} is too old`, `Use Node.js ${required} or newer.`);
}

/** Files other than client connections: the store, logs, listeners. */
const otherFiles = 200;

/** Compares the limit of open files with the settings. Only Linux has /proc. */
export async function checkOpenFiles({ limits }: Settings): Promise<Finding[]> {
  const text = await readFile("/proc/self/limits", "utf8").catch(() => "");
  const [, limit] = /^Max open files\s+(\d+)/m.exec(text) ?? [];
  if (limit === undefined) {
    return [];
  }
  const { connections } = limits;
  return [
    Number(limit) >= connections + otherFiles
      ? ok("open files", `limit ${limit}`)
      : warn(
          "open files",
          `limit ${limit} is too low for CONNECTION_LIMIT=${connections}`,
          `Raise the limit (ulimit -n ${connections + otherFiles}), or lower CONNECTION_LIMIT.`,
        ),
  ];
}

/** Compares versions such as 20.19.0 number by number. */
export function isAtLeast(version: string, minimum: string): boolean {
  const numbers = version.split(".").map(Number);
  for (const [index, number] of minimum.split(".").map(Number).entries()) {
    const difference = (numbers[index] ?? 0) - number;
    if (difference !== 0) {
      return difference > 0;
    }
  }
  return true;
}

/** Milliseconds. */
const probeTimeout = 3_000;

/** Checks whether the port is free, or a service responds on it. */
export async function checkPort({ host, port, tls }: Settings): Promise<Finding> {
  if (port === 0) {
    return ok("port", "any free port");
  }
  const probed = host === undefined || host === "0.0.0.0" || host === "::" ? "127.0.0.1" : host;
  const address = formatHostPort(probed, port);
  if (!(await isInUse(probed, port))) {
    return ok("port", `${address} is free; no service is running`);
  }
  const ready = await probeReadiness(probed, port, tls !== undefined).catch(() => undefined);
  if (ready === undefined) {
    return fail(
      "port",
      `${address} is in use by a program that does not respond like Latchkey`,
      "Stop it, or set PORT to another port. If it is Latchkey, use the same TLS_CERT as the service.",
    );
  }
  return ready
    ? ok("port", `a service at ${address} is ready`)
    : fail("port", `a service at ${address} is not ready`, "Check its store.");
}

function isInUse(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: probeTimeout });
    const finish = (isInUse: boolean) => {
      socket.destroy();
      resolve(isInUse);
    };
    socket.once("connect", () => finish(true));
    socket.once("error", () => finish(false));
    socket.once("timeout", () => finish(false));
  });
}

/** Whether the service is ready; `undefined` if it is another program. */
async function probeReadiness(
  host: string,
  port: number,
  isSecure: boolean,
): Promise<boolean | undefined> {
  // The certificate does not matter for this probe.
  const options = { host, port, path: "/readyz", timeout: probeTimeout, rejectUnauthorized: false };
  const { status, type } = JSON.parse(await fetchText(options, isSecure));
  if (status === "ready") {
    return true;
  }
  return type === problemUri("store_unavailable") ? false : undefined;
}

function fetchText(options: RequestOptions, isSecure: boolean): Promise<string> {
  return new Promise((resolve, reject) => {
    const request = (isSecure ? secureRequest : plainRequest)(options, (response) => {
      text(response).then(resolve, reject);
    });
    request.on("error", reject);
    request.on("timeout", () => request.destroy(new Error("No response.")));
    request.end();
  });
}

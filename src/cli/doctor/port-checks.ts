import { request as plainRequest } from "node:http";
import { type RequestOptions, request as secureRequest } from "node:https";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import type { Settings } from "../../config.js";
import { type Finding, fail, ok } from "./finding.js";

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

/**
 * A tenant that is not attacked, in a separate process so that the attacker does not slow
 * it down. It calls and revokes continuously until its parent disconnects, and measures
 * the slowest of each.
 */
import { Agent, request } from "node:http";

const [, , port, key] = process.argv;
const agent = new Agent({ keepAlive: true, maxSockets: 1 });
const slowest = { call: 0, revocation: 0 };
const failures = [];
let rounds = 0;
let isStopped = false;
let onRound = () => {};

function send(callerKey, method, path, body) {
  const text = body === undefined ? "" : JSON.stringify(body);
  return new Promise((resolve, reject) => {
    const outgoing = request({
      host: "127.0.0.1",
      port,
      method,
      path,
      agent,
      headers: {
        "svc-api-key": callerKey,
        "content-length": Buffer.byteLength(text),
        ...(text !== "" && { "content-type": "application/json" }),
      },
    });
    outgoing.on("response", (incoming) => {
      let received = "";
      incoming.setEncoding("utf8");
      incoming.on("data", (chunk) => {
        received += chunk;
      });
      incoming.on("end", () => {
        if (incoming.statusCode >= 300) {
          reject(new Error(`${method} ${path}: ${incoming.statusCode} ${received}`));
        } else {
          resolve(received === "" ? undefined : JSON.parse(received));
        }
      });
      incoming.on("error", reject);
    });
    outgoing.on("error", reject);
    outgoing.end(text);
  });
}

async function time(kind, callerKey, method, path, body) {
  const startedAt = performance.now();
  const response = await send(callerKey, method, path, body);
  slowest[kind] = Math.max(slowest[kind], performance.now() - startedAt);
  return response;
}

/** Opens a session, revokes it with all others of its application, and deletes the application. */
async function runRound() {
  const permissions = ["token:read"];
  const application = { name: "other", type: "public", permissions };
  const created = await time("call", key, "POST", "/applications", application);
  const path = `/applications/${created.id}`;
  const { session_key: sessionKey } = await time("call", created.key, "POST", "/sessions");
  await time("call", sessionKey, "GET", "/whoami");
  await time("call", key, "PUT", path, { name: "renamed", permissions });
  await time("call", key, "GET", "/applications?size=1");
  await time("revocation", key, "POST", `${path}/sessions/revoke-all`);
  await time("revocation", key, "DELETE", path);
}

async function run() {
  while (!isStopped) {
    try {
      await runRound();
    } catch (error) {
      failures.push(error.message);
    }
    rounds++;
    onRound();
  }
}

await runRound();
Object.assign(slowest, { call: 0, revocation: 0 });
const stopped = run();
process.send("started");

process.on("message", async ({ waitFor }) => {
  if (waitFor === undefined) {
    isStopped = true;
    await stopped;
    process.send({ rounds, failures, ...slowest });
    agent.destroy();
    process.disconnect();
  } else {
    // The pending round started earlier.
    const target = rounds + waitFor + 1;
    onRound = () => {
      if (rounds >= target) {
        onRound = () => {};
        process.send("done");
      }
    };
  }
});
process.on("disconnect", () => process.exit());

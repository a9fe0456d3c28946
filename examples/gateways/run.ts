// Starts Latchkey, a small API and a proxy in front of it, and prints commands to try. Needs no other
// setup. Stop it with Ctrl+C.
//
//     npx tsx examples/gateways/run.ts nginx
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { createLatchkeyClient } from "latchkey/client";
import { findProxy, type ProxyName, proxyNames, startProxy } from "./proxies.js";

const name = process.argv[2] as ProxyName;
if (!proxyNames.includes(name) || findProxy(name) === undefined) {
  const installed = proxyNames.filter((proxy) => findProxy(proxy) !== undefined);
  console.error(`Usage: npx tsx examples/gateways/run.ts ${proxyNames.join("|")}`);
  console.error(`Installed: ${installed.join(", ") || "none"}. See tools/gateways/install.sh.`);
  process.exit(1);
}

const gatewayPort = process.env.GATEWAY_PORT ?? "8000";
const latchkeyScript = join("dist", "src", "main.js");
const folder = await mkdtemp(join(tmpdir(), "latchkey-gateway-"));
const environment = {
  PATH: process.env.PATH ?? "",
  DATA_DIR: folder,
  HOST: "127.0.0.1",
  PORT: process.env.LATCHKEY_PORT ?? "0",
  WORKERS: "1",
  GATEWAY_ROUTES: join("examples", "gateways", "routes.yaml"),
};
const stops: (() => unknown)[] = [() => rm(folder, { recursive: true, force: true })];

let isStopping = false;

/** Stops everything, last started first. A signal may arrive twice, from the terminal and from tsx. */
async function stop(): Promise<void> {
  if (!isStopping) {
    isStopping = true;
    for (const stopOne of stops.reverse()) {
      await stopOne();
    }
    process.exit(0);
  }
}
process.on("SIGINT", stop).on("SIGTERM", stop);

/** Whether the proxy denies requests without a key. */
const isReady = () =>
  fetch(`http://127.0.0.1:${gatewayPort}/cards/`).then(
    ({ status }) => status === 401,
    () => false,
  );

/** Starts a Node.js program and returns the port in its first output. */
async function startProgram(args: string[], env: NodeJS.ProcessEnv): Promise<string> {
  const child = spawn(process.execPath, args, {
    env,
    stdio: ["ignore", "pipe", "inherit"],
    // Ctrl+C reaches only this process, which stops the others in order.
    detached: true,
  });
  const closed = once(child, "close");
  stops.push(async () => {
    child.kill();
    await closed;
  });
  return new Promise((resolve, reject) => {
    let output = "";
    child.stdout.on("data", (text) => {
      output += text;
      const [, port] = /http:\/\/[\w.]+:(\d+)/.exec(output) ?? [];
      if (port !== undefined) {
        child.stdout.removeAllListeners("data").resume();
        resolve(port);
      }
    });
    child.once("close", () => reject(new Error(`${args.join(" ")} failed: ${output}`)));
  });
}

// Latchkey, with applications for the gateway and for its client.
const bootstrap = [latchkeyScript, "bootstrap", "--json"];
const { stdout } = await promisify(execFile)(process.execPath, bootstrap, { env: environment });
const { key: managementKey } = JSON.parse(stdout) as { key: string };
const latchkeyPort = await startProgram([latchkeyScript, "serve"], environment);
const url = `http://127.0.0.1:${latchkeyPort}`;
const { applications, close } = createLatchkeyClient({ url, key: managementKey });
const gateway = await applications.createApplication({
  name: "Gateway",
  type: "private",
  permissions: ["access:check"],
});
const client = await applications.createApplication({
  name: "Client",
  type: "private",
  rules: [{ priority: 1, container: "/pci/", transform: "mask", permissions: ["token:read"] }],
});
close();

// The API and the proxy.
const upstreamPort = await startProgram([join("examples", "gateways", "upstream.mjs")], {
  PATH: process.env.PATH ?? "",
  UPSTREAM_PORT: process.env.UPSTREAM_PORT ?? "0",
});
const proxy = await startProxy(name, {
  GATEWAY_PORT: gatewayPort,
  GATEWAY_KEY: gateway.key as string,
  LATCHKEY_HOST: "127.0.0.1",
  LATCHKEY_PORT: latchkeyPort,
  UPSTREAM_HOST: "127.0.0.1",
  UPSTREAM_PORT: upstreamPort,
});
stops.push(proxy.stop);
proxy.child.once("exit", stop);
while (!(await isReady())) {
  await delay(50);
}

console.log(`
${name} listens at http://127.0.0.1:${gatewayPort}. Try:

# Allowed: the API gets the identity of the client, and not its key.
curl -i http://127.0.0.1:${gatewayPort}/cards/card-4242 -H 'SVC-API-KEY: ${client.key}'

# Denied: the client may not create tokens (403), or sends no key (401).
curl -i http://127.0.0.1:${gatewayPort}/cards/ -H 'SVC-API-KEY: ${client.key}' -d '{}'
curl -i http://127.0.0.1:${gatewayPort}/cards/card-4242

# Revoke the key, then repeat the first command: 401.
curl -X DELETE ${url}/applications/${client.id} -H 'SVC-API-KEY: ${managementKey}'
`);

import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { join } from "node:path";
import { describe } from "@jest/globals";
import {
  findProxy,
  type GatewaySettings,
  type ProxyName,
  startProxy,
} from "../../examples/gateways/proxies.js";
import type { BootstrapResult } from "../../src/bootstrap.js";
import type { Environment } from "../../src/config/settings.js";
import { StoreUnavailable } from "../../src/store/port/errors.js";
import type { Store } from "../../src/store/port/store.js";
import type { Tracing } from "../../src/telemetry/tracing.js";
import type { Api } from "../support/api/api.js";
import { createRestApi } from "../support/api/rest.js";
import { send } from "../support/http/http.js";
import { startProxy as startTcpProxy, type TcpProxy } from "../support/http/tcp-proxy.js";
import { killWithParent } from "../support/service/child-process.js";
import { reservePorts } from "../support/service/ports.js";
import { captureOutput } from "../support/service/run-latchkey.js";
import { startServer, type TestServer } from "../support/service/server.js";
import { overrideStore } from "../support/service/store.js";
import { until } from "../support/until.js";

/** Whether to run the tests of a proxy. With REQUIRE_GATEWAYS=true they fail if it is missing. */
export function canRunProxy(name: ProxyName): boolean {
  return findProxy(name) !== undefined || process.env.REQUIRE_GATEWAYS === "true";
}

/** Tests with a real proxy. Skipped without it. */
export function describeWithProxy(name: ProxyName, title: string, tests: () => void): void {
  if (canRunProxy(name)) {
    describe(title, tests);
  } else {
    describe.skip(`${title} (not run: ${name} is missing, see tools/gateways/install.sh)`, tests);
  }
}

interface GatewayOptions {
  readonly environment?: Environment;
  readonly tracing?: Tracing | undefined;
}

/** Latchkey, a proxy with the configuration of its example, and the upstream of the examples. */
export interface Gateway {
  /** The port of the proxy. */
  readonly port: number;
  readonly server: TestServer;
  readonly root: BootstrapResult;
  readonly api: Api;
  /** The network between the proxy and Latchkey. */
  readonly network: TcpProxy;
  /** Makes the store of Latchkey unavailable, or available again. */
  setStoreDown(isDown: boolean): void;
  close(): Promise<void>;
}

export async function startGateway(
  name: ProxyName,
  { environment, tracing }: GatewayOptions = {},
): Promise<Gateway> {
  let isStoreDown = false;
  const server = await startServer("lmdb", {
    environment: { GATEWAY_ROUTES: "examples/gateways/routes.yaml", ...environment },
    wrapStore: (store) => failingWhile(() => isStoreDown, store),
    tracing,
  });
  const root = await server.createTenant();
  const api = createRestApi(server.url);
  const { key = "" } = await api.createApplication(root.key, {
    name: "Gateway",
    type: "private",
    permissions: ["access:check"],
  });
  const network = await startTcpProxy(server.port);
  const upstream = await startUpstream();
  const proxy = await startRunningProxy(name, {
    GATEWAY_KEY: key,
    LATCHKEY_HOST: "127.0.0.1",
    LATCHKEY_PORT: new URL(network.url).port,
    UPSTREAM_HOST: "127.0.0.1",
    UPSTREAM_PORT: upstream.port,
  });
  return {
    port: proxy.port,
    server,
    root,
    api,
    network,
    setStoreDown(isDown) {
      isStoreDown = isDown;
    },
    async close() {
      await proxy.stop();
      await upstream.stop();
      await network.close();
      await server.close();
    },
  };
}

/** Starts a proxy on a free port and waits until it denies requests without a key. */
export async function startRunningProxy(
  name: ProxyName,
  settings: Omit<GatewaySettings, "GATEWAY_PORT">,
  source?: string,
): Promise<{ port: number; stop(): Promise<void> }> {
  const [port = 0] = await reservePorts(1);
  // A process group, because nginx starts workers.
  const options = { stdio: "pipe", detached: true, ...(source && { source }) } as const;
  const proxy = await startProxy(name, { GATEWAY_PORT: String(port), ...settings }, options);
  killWithParent(proxy.child, { group: true });
  const { output } = captureOutput(proxy.child as ChildProcessWithoutNullStreams);
  await until(async () => {
    if (proxy.child.exitCode !== null) {
      throw new Error(`${name} exited with ${proxy.child.exitCode}: ${output.stderr}`);
    }
    const response = await send({ port }, "/cards/").catch(() => undefined);
    return response?.status === 401;
  });
  return { port, stop: proxy.stop };
}

export async function startUpstream(): Promise<{ port: string; stop(): Promise<void> }> {
  const child = spawn(process.execPath, [join("examples", "gateways", "upstream.mjs")], {
    env: { UPSTREAM_PORT: "0" },
    stdio: "pipe",
  });
  killWithParent(child);
  const upstream = captureOutput(child);
  const [, port = ""] = await upstream.until(/:(\d+)\n/);
  return {
    port,
    async stop() {
      child.kill();
      await upstream.ended();
    },
  };
}

/** A store that is unavailable for lookups of keys at times. */
function failingWhile(isDown: () => boolean, store: Store): Store {
  const { applications, sessions } = store;
  const check = () => {
    if (isDown()) {
      throw new StoreUnavailable("The test made the store unavailable.");
    }
  };
  return overrideStore(store, {
    applications: {
      find(id) {
        check();
        return applications.find(id);
      },
    },
    sessions: {
      find(id) {
        check();
        return sessions.find(id);
      },
    },
  });
}

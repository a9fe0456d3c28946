// Starts the proxies with the configuration files of this folder.
import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { chmod, copyFile, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";

/** The variables of the configuration files. */
export interface GatewaySettings {
  /** The port that the proxy listens on. */
  readonly GATEWAY_PORT: string;
  /** The key with which the proxy calls Latchkey. It needs `access:check`. */
  readonly GATEWAY_KEY: string;
  readonly LATCHKEY_HOST: string;
  readonly LATCHKEY_PORT: string;
  readonly UPSTREAM_HOST: string;
  readonly UPSTREAM_PORT: string;
}

export type ProxyName = keyof typeof proxies;

interface Proxy {
  /** Files in which `${NAME}` is replaced by the value of the variable. The proxies read the others from their environment. */
  readonly templates?: readonly string[];
  readonly files?: readonly string[];
  /** The arguments of the command, which runs in a folder with the files. */
  args(settings: GatewaySettings): string[];
}

const proxies = {
  caddy: {
    files: ["Caddyfile"],
    args: () => ["run", "--adapter", "caddyfile", "--config", "Caddyfile"],
  },
  envoy: {
    templates: ["envoy.yaml"],
    args: () => ["-c", "envoy.yaml", "--disable-hot-restart", "--concurrency", "1", "-l", "error"],
  },
  haproxy: {
    files: ["haproxy.cfg", "latchkey.lua"],
    args: () => ["-db", "-f", "haproxy.cfg"],
  },
  nginx: {
    templates: ["latchkey.conf"],
    files: ["nginx.conf"],
    args: () => ["-p", ".", "-c", "nginx.conf", "-e", "stderr", "-g", "daemon off;"],
  },
  traefik: {
    files: ["dynamic.yaml"],
    args: ({ GATEWAY_PORT }) => [
      `--entryPoints.web.address=127.0.0.1:${GATEWAY_PORT}`,
      // Removes headers such as X_Latchkey_Tenant_Id, which some servers read as X-Latchkey-Tenant-Id.
      "--entryPoints.web.http.aliasHeadersStrategy=delete",
      "--providers.file.filename=dynamic.yaml",
      "--global.checkNewVersion=false",
      "--log.level=ERROR",
    ],
  },
} satisfies Record<string, Proxy>;

export const proxyNames = Object.keys(proxies) as readonly ProxyName[];

const cacheHome = process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache");

/** Finds the program of a proxy on the PATH, or where `tools/gateways/install.sh` puts it. */
export function findProxy(name: ProxyName): string | undefined {
  const installed = join(cacheHome, "latchkey", "gateways", "bin");
  const folders = [...(process.env.PATH ?? "").split(delimiter), "/usr/sbin", installed];
  return folders.map((folder) => join(folder, name)).find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** A running proxy. */
export interface ProxyProcess {
  readonly child: ChildProcess;
  /** Kills the proxy and removes its files. */
  stop(): Promise<void>;
}

interface ProxyOptions extends SpawnOptions {
  /** The folder of the configuration files. */
  readonly source?: string;
}

/** Starts a proxy. Resolves before it listens. */
export async function startProxy(
  name: ProxyName,
  settings: GatewaySettings,
  { source = resolve("examples", "gateways", name), ...options }: ProxyOptions = {},
): Promise<ProxyProcess> {
  const program = findProxy(name);
  if (program === undefined) {
    throw new Error(
      `${name} is not installed. Run tools/gateways/install.sh, or install it by hand.`,
    );
  }
  const { files = [], templates = [], args }: Proxy = proxies[name];
  const folder = await mkdtemp(join(tmpdir(), `latchkey-${name}-`));
  // The workers of nginx are another user if it is started by root.
  await chmod(folder, 0o711);
  for (const file of files) {
    await copyFile(join(source, file), join(folder, file));
  }
  for (const file of templates) {
    const text = await readFile(join(source, file), "utf8");
    await writeFile(join(folder, file), substitute(text, settings), { mode: 0o600 });
  }
  const child = spawn(program, args(settings), {
    cwd: folder,
    env: { PATH: process.env.PATH ?? "", HOME: folder, ...settings },
    stdio: "inherit",
    ...options,
  });
  const exited = new Promise<void>((done) => child.once("close", () => done()));
  return {
    child,
    async stop() {
      child.kill("SIGTERM");
      await exited;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Does what envsubst does. */
function substitute(text: string, settings: GatewaySettings): string {
  return text.replaceAll(/\$\{([A-Z_]+)\}/g, (match, name) => {
    return settings[name as keyof GatewaySettings] ?? match;
  });
}

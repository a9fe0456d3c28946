import { existsSync, readFileSync } from "node:fs";
import { BlockList } from "node:net";
import { describe, expect, it } from "@jest/globals";
import { parse } from "yaml";
import { definitions } from "../../src/config/definitions.js";
import { readSettings } from "../../src/config/settings.js";
import { systemEndpointNames } from "../../src/transport/system/endpoints.js";

interface Service {
  readonly image: string;
  readonly user?: string;
  readonly read_only?: boolean;
  readonly cap_drop?: readonly string[];
  readonly security_opt?: readonly string[];
  readonly entrypoint?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly volumes?: readonly string[];
  readonly networks?: readonly string[] | Readonly<Record<string, { ipv4_address?: string }>>;
  readonly depends_on?: Readonly<Record<string, unknown>>;
  readonly ports?: readonly string[];
  readonly cpus?: number;
  readonly stop_grace_period?: string;
}

interface Network {
  readonly internal?: boolean;
  readonly ipam?: { readonly config: readonly { subnet: string; ip_range: string }[] };
}

/** With the default of each variable. */
const text = readFileSync("compose.yaml", "utf8").replaceAll(/\$\{\w+:-(.*?)\}/g, "$1");
const { services, networks, volumes } = parse(text, { merge: true }) as {
  services: Record<string, Service>;
  networks: Record<string, Network | null>;
  volumes: Record<string, unknown>;
};
const proxy = readFileSync("deploy/compose/haproxy.cfg", "utf8");
const secrets = readFileSync("deploy/compose/make-secrets.sh", "utf8");
const instances = ["latchkey-1", "latchkey-2"];
const members = ["mongodb-1", "mongodb-2", "mongodb-3"];

function service(name: string): Service {
  const found = services[name];
  if (!found) {
    throw new Error(`No service is named ${name}.`);
  }
  return found;
}

function networksOf({ networks: joined = [] }: Service): readonly string[] {
  return Array.isArray(joined) ? joined : Object.keys(joined);
}

function contains(network: string, address: string): boolean {
  const [start = "", bits] = network.split("/");
  const list = new BlockList();
  list.addSubnet(start, Number(bits));
  return list.check(address);
}

describe("compose.yaml", () => {
  it("gives every container a read-only root and no privileges", () => {
    for (const [name, { read_only, cap_drop, security_opt }] of Object.entries(services)) {
      expect({ name, read_only, cap_drop, security_opt }).toEqual({
        name,
        read_only: true,
        cap_drop: ["ALL"],
        security_opt: ["no-new-privileges:true"],
      });
    }
  });

  it("sets only existing settings, by variable and by secret file", () => {
    const allNames = new Set(Object.keys(definitions));
    const [, settings = ""] = /<< SETTINGS\n(.*?)\nSETTINGS/s.exec(secrets) ?? [];
    const secretNames = settings.split("\n").map((line) => line.split("=")[0] ?? "");
    expect(secretNames).toEqual(["MONGODB_URI", "KEY_PEPPER"]);
    for (const instance of instances) {
      const names = Object.keys(service(instance).environment ?? {});
      expect([...names, ...secretNames].filter((name) => !allNames.has(name))).toEqual([]);
    }
  });

  it("has valid settings", () => {
    const { environment = {}, cpus, stop_grace_period = "" } = service("latchkey-1");
    const settings = readSettings({ ...environment, MONGODB_URI: "mongodb://a/?replicaSet=rs0" });
    expect(settings.workers).toBe(cpus);
    expect(Number.parseInt(stop_grace_period, 10) * 1_000).toBeGreaterThan(
      settings.shutdownGrace + 4_000,
    );
  });

  it("trusts only the proxy, at a fixed address", () => {
    const { TRUSTED_PROXIES: trusted = "" } = service("latchkey-1").environment ?? {};
    expect(service("proxy").networks).toMatchObject({ service: { ipv4_address: trusted } });
    const [{ subnet, ip_range: others } = { subnet: "", ip_range: "" }] =
      networks.service?.ipam?.config ?? [];
    expect([contains(subnet, trusted), contains(others, trusted)]).toEqual([true, false]);
    expect(contains(subnet, others.split("/")[0] ?? "")).toBe(true);
  });

  it("contains no secret, and mounts each only where it is needed", () => {
    expect(JSON.stringify(services)).not.toMatch(/passw|MONGO_INITDB|PEPPER|:\/\/[^/]*@/i);
    const readers = (volume: string) =>
      Object.entries(services).flatMap(([name, { volumes: mounts = [] }]) =>
        mounts.some((mount) => mount.startsWith(`${volume}:`)) ? [name] : [],
      );
    expect(readers("members-secrets")).toEqual([...members, "secrets"]);
    expect(readers("setup-secrets")).toEqual(["secrets", "mongodb-set-up"]);
    expect(readers("service-secrets")).toEqual([...instances, "secrets"]);
  });

  it("separates the networks of callers, service and database", () => {
    const servicesIn = (network: string) =>
      Object.keys(services).filter((name) => networksOf(service(name)).includes(network));
    expect(servicesIn("outside")).toEqual(["proxy"]);
    expect(servicesIn("service")).toEqual(["proxy", ...instances]);
    expect(servicesIn("database")).toEqual([...instances, ...members]);
    expect([networks.service?.internal, networks.database?.internal]).toEqual([true, true]);
    const published = Object.entries(services).filter(([, { ports }]) => ports);
    expect(published.map(([name]) => name)).toEqual(["proxy"]);
  });

  it("names existing files, volumes, networks and services", () => {
    for (const used of Object.values(services)) {
      const { volumes: mounts = [], depends_on = {} } = used;
      for (const [source = ""] of mounts.map((mount) => mount.split(":"))) {
        expect([source, source.startsWith("./") ? existsSync(source) : source in volumes]).toEqual([
          source,
          true,
        ]);
      }
      expect(networksOf(used).filter((network) => !(network in networks))).toEqual([]);
      expect(Object.keys(depends_on).filter((name) => !(name in services))).toEqual([]);
    }
  });

  it("runs the members in the connection string", () => {
    const connected = service("secrets").environment?.MEMBERS ?? "";
    expect(connected.split(",")).toEqual(members.map((name) => `${name}:27017`));
    expect(service("mongodb-set-up").environment?.MEMBERS).toBe(connected);
  });
});

describe("the proxy", () => {
  it("forwards to all instances at the port of the service, over HTTP/1.1 and HTTP/2", () => {
    const { port } = readSettings({});
    const servers = [...proxy.matchAll(/^\s+server (\S+) (\S+)( proto h2)?/gm)];
    expect(servers.map(([, name, address, h2 = ""]) => [name, address, h2.trim()])).toEqual([
      ...instances.map((name) => [name, `${name}:${port}`, ""]),
      ...instances.map((name) => [name, `${name}:${port}`, "proto h2"]),
    ]);
    expect(service("proxy").ports?.[0]).toMatch(/:8080$/);
    expect(proxy).toMatch(/bind :8080$/m);
  });

  it("probes an existing path, times out later than the service and closes idle connections sooner", () => {
    const [, path] = /httpchk GET \/(\S+)/.exec(proxy) ?? [];
    expect(systemEndpointNames).toContain(path);
    const { requestTimeout, limits } = readSettings({});
    const seconds = (name: string) => {
      const [, value] = new RegExp(`timeout ${name} (\\d+)s`).exec(proxy) ?? [];
      return Number(value) * 1_000;
    };
    expect(seconds("server")).toBeGreaterThan(requestTimeout);
    expect(seconds("http-keep-alive")).toBeLessThan(limits.idleTimeout);
  });
});

import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "@jest/globals";
import { parse } from "yaml";
import { definitions } from "../../src/config/definitions.js";
import { readSettings } from "../../src/config/settings.js";
import { systemEndpointNames } from "../../src/transport/system/endpoints.js";

interface Schema {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly propertyNames?: { readonly enum: readonly string[] };
  readonly additionalProperties?: unknown;
}

const folder = "deploy/helm/latchkey";
const read = (file: string) => readFileSync(`${folder}/${file}`, "utf8");
const chart = parse(read("Chart.yaml"));
const values = parse(read("values.yaml"));
const schema: Schema = JSON.parse(read("values.schema.json"));
const templates = readdirSync(`${folder}/templates`).map((name) => read(`templates/${name}`));
const deployment = read("templates/deployment.yaml");
const setByPod = [...read("templates/_environment.tpl").matchAll(/- name: ([A-Z_]+)$/gm)].map(
  ([, name = ""]) => name,
);

/** Settings that a pod cannot use. Probes have no client certificate, and a pod must listen on all addresses. */
const unsupported = ["HOST", "METRICS", "SECRET_SCANNING_KEYS", "TLS_CLIENT_CA"];

describe("the chart", () => {
  it("has the version of the service", () => {
    const { version } = JSON.parse(readFileSync("package.json", "utf8"));
    expect(chart.appVersion).toBe(version);
  });

  it("sets only existing settings, and allows every other one", () => {
    const free = schema.properties?.settings?.propertyNames?.enum ?? [];
    expect([...free, ...setByPod, ...unsupported].sort()).toEqual(Object.keys(definitions).sort());
  });

  it("has a schema for each value, and accepts no others", () => {
    expect(differences(values, schema, "")).toEqual([]);
  });

  it("uses each value, and no undefined one", () => {
    const used = new Set(
      templates.flatMap((text) => [...text.matchAll(/\.Values\.(\w+)/g)].map(([, name]) => name)),
    );
    expect([...used].sort()).toEqual(Object.keys(values).sort());
  });

  it("probes existing paths", () => {
    const paths = [...deployment.matchAll(/httpGet: \{ path: \/(\S+),/g)].map(([, path]) => path);
    expect(paths).toEqual(["healthz", "healthz", "readyz"]);
    expect(systemEndpointNames).toEqual(expect.arrayContaining(paths));
  });

  it("matches the image and the defaults of the service", () => {
    const { port, shutdownGrace } = readSettings({});
    expect(deployment).toContain(`containerPort: ${port}`);
    expect(values.shutdownGraceSeconds * 1_000).toBe(shutdownGrace);
    const [, user] = /^USER (\d+):\1$/m.exec(readFileSync("Dockerfile", "utf8")) ?? [];
    for (const key of ["runAsUser", "runAsGroup", "fsGroup"]) {
      expect(deployment).toContain(`${key}: ${user}`);
    }
  });
});

/** Differences between the names in values and schema, and objects that accept other names. */
function differences(value: unknown, { properties, ...rest }: Schema, path: string): string[] {
  if (!properties) {
    return [];
  }
  const unrestricted =
    rest.additionalProperties === false ? [] : [`${path || "/"} accepts any name`];
  const actual = isObject(value) ? value : {};
  // Helm adds `global`, and not every quantity is set.
  const optional = path === "" ? ["global"] : [];
  const isQuantities = /\/resources\/\w+$/.test(path);
  const missing = Object.keys(properties).filter(
    (name) => !(name in actual || optional.includes(name) || isQuantities),
  );
  const unknown = Object.keys(actual).filter((name) => !(name in properties));
  return [
    ...unrestricted,
    ...missing.map((name) => `${path}/${name} has no value`),
    ...unknown.map((name) => `${path}/${name} has no schema`),
    ...Object.entries(properties).flatMap(([name, inner]) =>
      differences(actual[name], inner, `${path}/${name}`),
    ),
  ];
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { promisify } from "node:util";
import { describe, expect, it } from "@jest/globals";
import { readSettings } from "../../src/config/settings.js";
import { isFullSuite } from "../support/jest/suite.js";
import { withTempFolder } from "../support/service/run-latchkey.js";
import { useServices } from "../support/service/service-process.js";
import { until } from "../support/until.js";
import { type Instruction, readDockerfile } from "./dockerfile.js";

const stages = readDockerfile();
const { instructions: last = [] } = stages.at(-1) ?? {};
const packageJson = JSON.parse(readFileSync("package.json", "utf8"));

function getInstruction(name: string, instructions: readonly Instruction[] = last): string {
  const found = instructions.filter((instruction) => instruction.name === name);
  expect(found).toHaveLength(1);
  return found[0]?.text ?? "";
}

describe("the Dockerfile", () => {
  it("pins the release of each base image", () => {
    for (const { image } of stages) {
      expect(image).toMatch(/^node:\d+\.\d+\.\d+-bookworm-slim$/);
    }
  });

  it("copies existing files that are in the build context", () => {
    const ignored = readFileSync(".dockerignore", "utf8").split("\n");
    const copies = stages.flatMap(({ instructions }) =>
      instructions.filter(({ name }) => name === "COPY"),
    );
    for (const { flags, text } of copies) {
      const sources = text.split(/\s+/).slice(0, -1);
      for (const source of flags.from ? [] : sources) {
        expect([source, existsSync(source)]).toEqual([source, true]);
        expect(ignored.some((path) => path !== "" && `${source}/`.startsWith(`${path}/`))).toBe(
          false,
        );
      }
      expect([undefined, ...stages.map(({ name }) => name)]).toContain(flags.from);
    }
    expect(copies.length).toBeGreaterThan(4);
  });

  it("runs existing package scripts, and none of dependencies", () => {
    const steps = stages[0]?.instructions.filter(({ name }) => name === "RUN") ?? [];
    for (const { text } of steps) {
      const [, script] = /^npm run (\S+)/.exec(text) ?? [];
      expect(script === undefined || script in packageJson.scripts).toBe(true);
      expect(!/^npm (ci|prune)/.test(text) || text.includes("--ignore-scripts")).toBe(true);
    }
    expect(steps.map(({ text }) => text)).toContain("npm prune --omit=dev --ignore-scripts");
  });

  it("runs as an unprivileged user who owns only the data", () => {
    expect(getInstruction("USER")).toBe("10001:10001");
    const owned = last.filter(({ flags }) => flags.chown);
    expect(owned.map(({ flags, text }) => [flags.chown, text])).toEqual([
      ["10001:10001", "/app/data /data"],
    ]);
    expect(getInstruction("ENV")).toContain("DATA_DIR=/data");
  });

  it("prints no key in the container log", () => {
    expect(getInstruction("ENV").split(" ")).toContain("FIRST_KEY=hide");
  });

  it("starts the package's command without a shell, so that it receives signals", () => {
    expect(JSON.parse(getInstruction("ENTRYPOINT"))).toEqual([
      "node",
      `/app/${packageJson.bin.latchkey}`,
    ]);
    expect(JSON.parse(getInstruction("CMD"))).toEqual(["serve"]);
    expect(getInstruction("STOPSIGNAL")).toBe("SIGTERM");
    expect(Number(getInstruction("EXPOSE"))).toBe(readSettings({}).port);
    expect(last.map(({ name }) => name)).not.toContain("ADD");
  });
});

describe("the health check of the image", () => {
  const start = useServices();
  const check = "deploy/docker/healthcheck.mjs";
  const tls = { TLS_CERT: "test/fixtures/localhost.crt", TLS_KEY: "test/fixtures/localhost.key" };

  /** Runs the health check and returns its exit code. */
  async function runCheck(environment: Record<string, string>): Promise<number> {
    const run = promisify(execFile)(process.execPath, [check], { env: environment });
    return run.then(
      () => 0,
      ({ code }: { code: number }) => code,
    );
  }

  const variants: [how: string, settings: Record<string, string>][] = [
    ["without TLS", {}],
    ["over TLS", tls],
    ["with required client certificates", { ...tls, TLS_CLIENT_CA: tls.TLS_CERT }],
  ];

  it.each(isFullSuite ? variants : variants.slice(-1))(
    "passes while the service runs %s, and fails after it stopped",
    (_, settings) =>
      withTempFolder(async (DATA_DIR) => {
        const { port, process } = await start({ DATA_DIR, ...settings });
        const environment = { PORT: String(port), ...settings };
        // Without CPU time the check can time out, so it is repeated, as Docker does.
        await until(async () => (await runCheck(environment)) === 0);
        process.child.kill("SIGTERM");
        await process.ended();
        expect(await runCheck(environment)).toBe(1);
      }),
  );

  it("is run by the Dockerfile", () => {
    const [file = ""] = check.split("/").slice(-1);
    expect(getInstruction("HEALTHCHECK")).toContain(`CMD ["node", "/app/${file}"]`);
  });
});

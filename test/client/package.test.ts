import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { promisify } from "node:util";
import { describe, expect, it } from "@jest/globals";
import * as proto from "../../src/client/proto.js";
import { services } from "../../src/contract/methods.js";

const { exports } = JSON.parse(readFileSync("package.json", "utf8"));

/** Every file in the exports of the package, for any condition. */
function listFiles(target: unknown): string[] {
  return typeof target === "string" ? [target] : Object.values(target as object).flatMap(listFiles);
}

/** Runs a program that imports the package by its name, and returns its output. */
async function run(program: string, ...options: string[]): Promise<string> {
  const args = [...options, "--input-type=module", "--eval", program];
  return (await promisify(execFile)(process.execPath, args)).stdout.trim();
}

describe("the package", () => {
  it("has a source for every file that it exports", () => {
    const built = listFiles(exports).filter((file) => file.startsWith("./dist/"));
    const sources = built.map((file) =>
      file.replace("./dist/", "").replace(/\.d\.ts$|\.js$/, ".ts"),
    );
    expect(sources).toHaveLength(14);
    expect(sources.filter((source) => !existsSync(source))).toEqual([]);
  });

  it("has a client for Node, and another for browsers", async () => {
    const program = `console.log(import.meta.resolve("latchkey/client"))`;
    expect(await run(program)).toMatch(/\/dist\/src\/client\/node\.js$/);
    expect(await run(program, "--conditions=browser")).toMatch(/\/dist\/src\/client\/browser\.js$/);
  });

  it("exports every service of the API", () => {
    const names = services.map(({ name }) => name);
    expect(names.filter((name) => !(name in proto))).toEqual([]);
  });

  it("does not export its other modules", async () => {
    const program = `console.log(await import("latchkey/dist/src/auth/keys.js").catch((e) => e.code))`;
    expect(await run(program)).toBe("ERR_PACKAGE_PATH_NOT_EXPORTED");
  });

  it("loads no framework that the guarded service does not use", async () => {
    const program = `
      import { createRequire } from "node:module";
      for (const name of ["", "/express", "/fastify", "/connect"]) {
        await import("latchkey/client" + name);
      }
      const loaded = Object.keys(createRequire(process.cwd() + "/").cache);
      console.log(loaded.filter((file) => /node_modules.(express|fastify|@grpc)/.test(file)).length);
    `;
    expect(await run(program)).toBe("0");
    expect(await run(program.replace('"/connect"', '"/grpc"'))).not.toBe("0");
  });
});

import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "@jest/globals";

/** An ignored folder in which the package can be imported by its own name. */
const cache = join("node_modules", ".cache");

/** Declares the variables that the samples use but do not define. */
const preamble = "declare const key: string;";

const config = {
  extends: "../../../tsconfig.json",
  compilerOptions: {
    noEmit: true,
    rootDir: "../../..",
    jsx: "react-jsx",
    lib: ["es2023", "es2024.string", "dom", "dom.iterable"],
    // A sample may define variables for later use.
    noUnusedLocals: false,
  },
  include: ["*.tsx"],
};

/** The code blocks of a page with imports. Blocks without are parts of examples, which have their own tests. */
function programsIn(page: string): string[] {
  const blocks = readFileSync(page, "utf8").matchAll(/^```tsx?\n(.*?)^```/gms);
  return [...blocks].flatMap(([, block = ""]) => (/^import /m.test(block) ? [block] : []));
}

/** Compiles each program as its own file, and returns the errors. */
async function compile(programs: readonly string[]): Promise<string> {
  await mkdir(cache, { recursive: true });
  const folder = await mkdtemp(join(cache, "latchkey-docs-"));
  try {
    await writeFile(join(folder, "tsconfig.json"), JSON.stringify(config));
    for (const [index, program] of programs.entries()) {
      await writeFile(join(folder, `${index}.tsx`), `${program}\n${preamble}\n`);
    }
    const args = [join("node_modules", "typescript", "bin", "tsc"), "-p", folder];
    return await promisify(execFile)(process.execPath, args).then(
      ({ stdout }) => stdout,
      ({ stdout, message }) => stdout || message,
    );
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

describe("the TypeScript in the documentation", () => {
  it.each([
    ["docs/tutorials/react.md", 1],
    ["docs/reference/client.md", 5],
  ])("compiles in %s", async (page, count) => {
    const programs = programsIn(page);
    expect(programs.length).toBeGreaterThanOrEqual(count);
    expect(await compile(programs)).toBe("");
  });

  it("is reported if it does not compile", async () => {
    const wrong = 'import { createGuard } from "latchkey/client";\ncreateGuard({ url: 1, key });';
    expect(await compile([wrong])).toMatch(/TS2322: Type 'number'/);
  });
});

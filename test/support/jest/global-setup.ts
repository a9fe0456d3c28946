/** What jest does once, before the first test of a run. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type * as mongod from "../mongo/mongod.js";

// jest loads this file in a way that does not know that our imports, which
// name files as Node will see them, mean TypeScript.
const { findFastTempFolder, startMongod }: typeof mongod = require("../mongo/mongod.ts");

declare global {
  var testMongod: mongod.Mongod | undefined;
}

export default async function setup(): Promise<void> {
  process.env.TMPDIR = await findFastTempFolder();
  await Promise.all([provideMongod(), build()]);
}

/** One MongoDB for the whole run, and each test file takes a database of its own in it. */
async function provideMongod(): Promise<void> {
  if (!process.env.MONGODB_TEST_URI) {
    globalThis.testMongod = await startMongod();
    process.env.MONGODB_TEST_URI = globalThis.testMongod.uri;
  }
}

/** Builds the package, so that what imports it by its name gets it as the sources are now. */
async function build(): Promise<void> {
  try {
    await promisify(execFile)("npm", ["run", "--silent", "build"]);
  } catch (cause) {
    const { stdout = "", stderr = "" } = cause as { stdout?: string; stderr?: string };
    throw new Error(`The package does not build.\n${stdout}${stderr}`, { cause });
  }
}

/** Runs once before all tests. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type * as mongod from "../mongo/mongod.js";

// jest does not apply moduleNameMapper to this file, so it cannot resolve .js imports
// to TypeScript files.
const { findFastTempFolder, startMongod }: typeof mongod = require("../mongo/mongod.ts");

declare global {
  var testMongod: mongod.Mongod | undefined;
}

export default async function setup(): Promise<void> {
  process.env.TMPDIR = await findFastTempFolder();
  await Promise.all([provideMongodb(), process.env.TEST_BUILD !== "off" && build()]);
}

/** Starts one MongoDB for all tests. Each test file creates its own databases. */
async function provideMongodb(): Promise<void> {
  if (!process.env.MONGODB_TEST_URI) {
    globalThis.testMongod = await startMongod();
    process.env.MONGODB_TEST_URI = globalThis.testMongod.uri;
  }
}

/** Builds the package for tests that import it by its name. TEST_BUILD=off keeps an earlier build. */
async function build(): Promise<void> {
  try {
    await promisify(execFile)("npm", ["run", "--silent", "build"]);
  } catch (cause) {
    const { stdout = "", stderr = "" } = cause as { stdout?: string; stderr?: string };
    throw new Error(`The build of the package failed.\n${stdout}${stderr}`, { cause });
  }
}

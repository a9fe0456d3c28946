/** Checks package-lock.json, and that the installed packages match it. */
import { spawnSync } from "node:child_process";
import { findLockfileProblems, packagesIn, readLockfile, readManifest } from "./lockfile.js";

const lock = readLockfile();
const problems = findLockfileProblems(lock, readManifest());
const { status, stderr } = spawnSync("npm", ["ls", "--all", "--silent"], { encoding: "utf8" });
if (status !== 0) {
  problems.push(`the installed packages differ (npm ls): run npm ci. ${stderr}`);
}
for (const problem of problems) {
  console.error(`package-lock.json: ${problem}`);
}
if (problems.length > 0) {
  process.exitCode = 1;
} else {
  console.log(`package-lock.json: ${packagesIn(lock).length} packages, all with a hash`);
}

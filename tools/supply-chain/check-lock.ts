/** Says what is wrong with package-lock.json, and whether what is installed is what it says. */
import { spawnSync } from "node:child_process";
import { faultsOf, packagesIn, readLockfile, readManifest } from "./lockfile.js";

const lock = readLockfile();
const faults = faultsOf(lock, readManifest());
const { status, stderr } = spawnSync("npm", ["ls", "--all", "--silent"], { encoding: "utf8" });
if (status !== 0) {
  faults.push(`what is installed is not what it says: run npm ci (npm ls says so. ${stderr})`);
}
for (const fault of faults) {
  console.error(`package-lock.json: ${fault}`);
}
if (faults.length > 0) {
  process.exitCode = 1;
} else {
  console.log(`package-lock.json: ${packagesIn(lock).length} packages, each with its hash`);
}

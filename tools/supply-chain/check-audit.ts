/**
 * Checks all packages for known vulnerabilities and their signatures, or only one
 * of the two: `vulnerabilities`, `signatures`. Fails if the registry is
 * unreachable, unless `--allow-unreachable` is given.
 */
import { spawnSync } from "node:child_process";
import { type AuditResult, parseAudit, parseSignatures } from "./audit.js";

const args = process.argv.slice(2);
const allowUnreachable = args.includes("--allow-unreachable");
const checks = {
  vulnerabilities: { command: ["audit"], parse: parseAudit },
  signatures: { command: ["audit", "signatures"], parse: parseSignatures },
} satisfies Record<string, { command: string[]; parse: (report: string) => AuditResult }>;
const selected = Object.entries(checks).filter(([name]) => args.includes(name));

for (const [, { command, parse }] of selected.length > 0 ? selected : Object.entries(checks)) {
  const label = `npm ${command.join(" ")}`;
  const timeouts = ["--fetch-retries=0", "--fetch-timeout=20000"];
  const { stdout } = spawnSync("npm", [...command, "--json", ...timeouts], {
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024,
  });
  const result = parse(stdout);
  if ("passed" in result) {
    console.log(`${label}: ${result.passed}`);
  } else if ("unreachable" in result) {
    console.log(`${label}: NOT CHECKED, the registry is unreachable: ${result.unreachable}`);
    process.exitCode ||= allowUnreachable ? 0 : 1;
  } else {
    for (const line of result.failed) {
      console.error(`${label}: ${line}`);
    }
    process.exitCode = 1;
  }
}

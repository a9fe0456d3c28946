/**
 * Asks the registry for known faults of all packages and for their signatures,
 * or for one of them: `findings`, `signatures`.
 * Where it does not answer nothing is known, which is a failure too, unless
 * `--if-answered` says that only an answer counts.
 */
import { spawnSync } from "node:child_process";
import { auditVerdict, signaturesVerdict, type Verdict } from "./audit.js";

const words = process.argv.slice(2);
const isLenient = words.includes("--if-answered");
const questions = {
  findings: { args: ["audit"], read: auditVerdict },
  signatures: { args: ["audit", "signatures"], read: signaturesVerdict },
} satisfies Record<string, { args: string[]; read: (report: string) => Verdict }>;
const named = Object.entries(questions).filter(([name]) => words.includes(name));

for (const [, { args, read }] of named.length > 0 ? named : Object.entries(questions)) {
  const what = `npm ${args.join(" ")}`;
  const impatient = ["--fetch-retries=0", "--fetch-timeout=20000"];
  const { stdout } = spawnSync("npm", [...args, "--json", ...impatient], {
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024,
  });
  const verdict = read(stdout);
  if ("passed" in verdict) {
    console.log(`${what}: ${verdict.passed}`);
  } else if ("unanswered" in verdict) {
    console.log(`${what}: NOT CHECKED, the registry gave no answer: ${verdict.unanswered}`);
    process.exitCode ||= isLenient ? 0 : 1;
  } else {
    for (const line of verdict.failed) {
      console.error(`${what}: ${line}`);
    }
    process.exitCode = 1;
  }
}

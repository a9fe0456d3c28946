import type { Command } from "commander";
import type { Settings } from "../../config/settings.js";
import { exitCodes, latchkey } from "../errors.js";
import { createOutput, type OutputFlags } from "../output.js";
import { createOptionNamer } from "../settings.js";
import { checkNode, checkOpenFiles, checkPort } from "./machine-checks.js";
import { type Finding, fail, formatReport, mapTexts, ok } from "./report.js";
import { checkRisks, checkSettings, checkTls } from "./settings-checks.js";

/** Runs every check. Changes nothing. */
export async function doctorCommand(flags: OutputFlags, command: Command): Promise<void> {
  const nameOptions = createOptionNamer(command);
  const findings = (await runChecks()).map((finding) => mapTexts(finding, nameOptions));
  const isHealthy = findings.every(({ state }) => state !== "fail");
  const report = { ok: isHealthy, findings };
  createOutput(flags).showValue(report, (display) => formatReport(findings, display));
  process.exitCode = exitCodes[isHealthy ? "success" : "failed"].code;
}

async function runChecks(): Promise<Finding[]> {
  const { settings, findings } = checkSettings();
  const first = [checkNode(), ...findings];
  if (!settings) {
    return first;
  }
  return [
    ...first,
    ...checkRisks(settings),
    ...(await checkTls(settings)),
    ...(await checkOpenFiles(settings)),
    ...(await checkStore(settings)),
    await checkPort(settings),
  ];
}

async function checkStore({ store, eventRetention }: Settings): Promise<Finding[]> {
  try {
    if (store.kind === "mongodb") {
      const { inspectMongo } = await import("../../store/mongo/inspect.js");
      const { checkMongo } = await import("./store-checks.js");
      return checkMongo(await inspectMongo({ ...store, eventRetention }));
    }
    const { inspectFolder } = await import("../../store/lmdb/folder.js");
    const { checkFolder } = await import("./store-checks.js");
    const clock = ok("clock", "the store uses the clock of this machine");
    return [...checkFolder(await inspectFolder(store.dataDir)), clock];
  } catch (error) {
    const { message } = error as Error;
    return [fail("store", message, `Fix it, then run ${latchkey("doctor")} again.`)];
  }
}

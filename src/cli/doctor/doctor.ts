import type { Settings } from "../../config/settings.js";
import { exitCodes } from "../errors.js";
import { createOutput, type OutputFlags } from "../output.js";
import { checkNode, checkOpenFiles, checkPort } from "./machine-checks.js";
import { type Finding, fail, formatReport, ok, toJson } from "./report.js";
import { checkRisks, checkSettings, checkTls } from "./settings-checks.js";

/** Runs every check. Changes nothing. */
export async function doctorCommand(flags: OutputFlags): Promise<void> {
  const { settings, findings } = checkSettings();
  findings.unshift(checkNode());
  if (settings) {
    findings.push(
      ...checkRisks(settings),
      ...(await checkTls(settings)),
      ...(await checkOpenFiles(settings)),
      ...(await checkStore(settings)),
      await checkPort(settings),
    );
  }
  const isHealthy = findings.every(({ state }) => state !== "fail");
  const report = { ok: isHealthy, findings: findings.map(toJson) };
  createOutput(flags).showValue(report, (display) => formatReport(findings, display));
  process.exitCode = exitCodes[isHealthy ? "success" : "failed"].code;
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
    return [fail("store", message, "Fix it, then run latchkey doctor again.")];
  }
}

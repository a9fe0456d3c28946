import type { Settings } from "../../config/settings.js";
import { escapeUnprintable } from "../../lib/printable.js";
import { exitCodes } from "../errors.js";
import type { Display } from "../format.js";
import { createOutput, type OutputFlags } from "../output.js";
import { padText } from "../text-width.js";
import { type Finding, fail, ok } from "./finding.js";
import { checkNode, checkOpenFiles, checkPort } from "./machine-checks.js";
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

/** The field `mend` is part of the JSON output, which scripts rely on. */
function toJson({ fix, ...finding }: Finding) {
  return { ...finding, ...(fix !== undefined && { mend: fix }) };
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

function formatReport(findings: readonly Finding[], display: Display): string {
  const { good, warn, bad, dim } = display.colors;
  const paint = { ok: good, warn, fail: bad } as const;
  const width = Math.max(...findings.map(({ check }) => check.length));
  const lines = findings.flatMap(({ check, state, found, fix }) => [
    `${paint[state](padText(state, 4))}  ${padText(check, width)}  ${escapeUnprintable(found)}`,
    ...(fix ? [`${padText("", 4 + 2 + width)}  ${dim(`→ ${escapeUnprintable(fix)}`)}`] : []),
  ]);
  return `${lines.join("\n")}\n\n${formatSummary(findings)}\n`;
}

function formatSummary(findings: readonly Finding[]): string {
  const count = (state: Finding["state"]) => findings.filter((it) => it.state === state).length;
  const [fails, warns] = [count("fail"), count("warn")];
  return `${fails} failed, ${warns} ${warns === 1 ? "warning" : "warnings"}, ${count("ok")} passed`;
}

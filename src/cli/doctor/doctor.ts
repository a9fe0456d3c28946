import type { Settings } from "../../config/settings.js";
import { visible } from "../../lib/printable.js";
import { exitCodes } from "../errors.js";
import { createOutput, type OutputFlags } from "../output.js";
import { type Look, padText } from "../table.js";
import { type Finding, fail, ok } from "./finding.js";
import { checkNode, checkOpenFiles, checkPort } from "./machine-checks.js";
import { checkChoices, checkSettings, checkTls } from "./settings-checks.js";

/** Looks at all that the service needs, and changes nothing. */
export async function doctorCommand(flags: OutputFlags): Promise<void> {
  const { settings, findings } = checkSettings();
  findings.unshift(checkNode());
  if (settings) {
    findings.push(
      ...checkChoices(settings),
      ...(await checkTls(settings)),
      ...(await checkOpenFiles(settings)),
      ...(await checkStore(settings)),
      await checkPort(settings),
    );
  }
  const isWell = findings.every(({ state }) => state !== "fail");
  createOutput(flags).showValue({ ok: isWell, findings }, (look) => reportText(findings, look));
  process.exitCode = exitCodes[isWell ? "done" : "failed"].code;
}

async function checkStore({ store, eventRetention }: Settings): Promise<Finding[]> {
  try {
    if (store.kind === "mongodb") {
      const { inspectMongo } = await import("../../store/mongo/inspect.js");
      const { checkMongo } = await import("./store-checks.js");
      return checkMongo(await inspectMongo({ ...store, eventRetention }));
    }
    const { inspectFolder } = await import("../../store/lmdb/inspect.js");
    const { checkFolder } = await import("./store-checks.js");
    const clock = ok("clock", "the store has that of this machine");
    return [...checkFolder(await inspectFolder(store.dataDir)), clock];
  } catch (error) {
    const { message } = error as Error;
    return [fail("store", message, "See to it, and look again.")];
  }
}

function reportText(findings: readonly Finding[], look: Look): string {
  const { good, warn, bad, faint } = look.colours;
  const paint = { ok: good, warn, fail: bad } as const;
  const width = Math.max(...findings.map(({ check }) => check.length));
  const lines = findings.flatMap(({ check, state, found, mend }) => [
    `${paint[state](padText(state, 4))}  ${padText(check, width)}  ${visible(found)}`,
    ...(mend ? [`${padText("", 4 + 2 + width)}  ${faint(`→ ${visible(mend)}`)}`] : []),
  ]);
  return `${lines.join("\n")}\n\n${summaryText(findings)}\n`;
}

function summaryText(findings: readonly Finding[]): string {
  const count = (state: Finding["state"]) => findings.filter((it) => it.state === state).length;
  const [fails, warns] = [count("fail"), count("warn")];
  return fails + warns === 0
    ? "All is well."
    : `${fails} to mend, ${warns} to think about, ${count("ok")} well.`;
}

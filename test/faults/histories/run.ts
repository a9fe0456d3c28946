import { until } from "../../support/until.js";
import type { CallRecorder, Endpoint } from "../support/call-recorder.js";
import { startHistoryLoad } from "./load.js";
import { checkRecords, type Incident } from "./timeline.js";

/** Something that happens to a service under load. */
interface Disturbance {
  readonly name: string;
  /** Resolves when the service works again. */
  inject(): Promise<void> | void;
}

interface RunOptions {
  readonly recorder: CallRecorder;
  readonly endpoints: readonly Endpoint[];
  /** A key with all permissions. */
  readonly root: string;
  readonly random: () => number;
  /** The number of calls before, between and after the disturbances. */
  readonly calls: number;
  readonly disturbances: readonly Disturbance[];
}

/** The operations that must have succeeded for a meaningful result. */
const operations =
  "create rename regenerate disable enable revoke-all delete open authorize get use list".split(
    " ",
  );

/** Disturbs a service under load. Returns a timeline of each record that no sequential order explains. */
export async function runHistories(options: RunOptions): Promise<readonly string[]> {
  const { calls, disturbances, ...loadOptions } = options;
  const { recorder } = options;
  const incidents: Incident[] = [];
  const load = startHistoryLoad(loadOptions);
  const untilMoreCalls = () => {
    const enough = recorder.outcomes.length + calls;
    return until(async () => recorder.outcomes.length >= enough);
  };
  const isDone = (operation: string) =>
    recorder.outcomes.some(
      (outcome) => outcome.operation === operation && outcome.result === "done",
    );
  try {
    await untilMoreCalls();
    for (const { name, inject } of disturbances) {
      incidents.push({ at: performance.now(), text: name });
      await inject();
      await untilMoreCalls();
    }
    await until(async () => operations.every(isDone));
    await load.stop();
  } finally {
    load.close();
  }
  return checkRecords(load.records, incidents);
}

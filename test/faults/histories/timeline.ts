import type { CheckedRecord, RecordedCall } from "./record.js";

/** Something that happened to the service, such as a kill. */
export interface Incident {
  readonly at: number;
  readonly text: string;
}

/** Returns a timeline of each record whose history has no explanation. */
export function checkRecords(
  records: readonly CheckedRecord[],
  incidents: readonly Incident[] = [],
): string[] {
  return records.flatMap((record) => {
    const violation = record.findViolation();
    return violation ? `${record.name}\n${formatTimeline(violation, incidents)}` : [];
  });
}

type RecordViolation = NonNullable<ReturnType<CheckedRecord["findViolation"]>>;

const head = ["sent", "ended", "client", "endpoint", "request", "outcome", "order"];

/** Formats the calls of a violation as a table, by their start. */
function formatTimeline(
  { operations, culprit, order }: RecordViolation,
  incidents: readonly Incident[],
): string {
  const calls = [...new Set(operations.map(({ call }) => call))];
  const from = Math.min(...calls.map(({ startedAt }) => startedAt));
  const until = culprit.endedAt;
  const time = (at: number) => `${(at - from).toFixed(1)}`;
  // A call takes effect with its last step.
  const lastSteps = new Map(order.map((step, index) => [step.call, index]));
  const ranked = [...lastSteps].sort(([, a], [, b]) => a - b).map(([call]) => call);

  function formatCall(call: RecordedCall): string[] {
    const { startedAt, endedAt, client, endpoint, request, isUnknown } = call;
    const isPending = endedAt > until || isUnknown;
    const outcome = `${call.outcome}${endedAt > until ? " (later)" : ""}`;
    const rank = ranked.indexOf(call) + 1;
    const place = rank > 0 ? String(rank) : isPending ? "no effect yet" : "";
    const mark = call === culprit.call ? "<== impossible" : place;
    return [time(startedAt), time(endedAt), client, endpoint, request, outcome, mark];
  }

  const rows = [
    ...calls.map((call) => ({ at: call.startedAt, cells: formatCall(call) })),
    ...incidents
      .filter(({ at }) => at > from && at < until)
      .map(({ at, text }) => ({ at, cells: [time(at), "", "", "", `*** ${text}`, "", ""] })),
  ].sort((a, b) => a.at - b.at);
  return [
    "No sequential order explains the call marked with <==. Times are in milliseconds. The last column is an order of the",
    "calls that ended before it.",
    ...formatTable([head, ...rows.map(({ cells }) => cells)]),
  ].join("\n");
}

function formatTable(rows: readonly (readonly string[])[]): string[] {
  const widths = head.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd(),
  );
}

import { type Colors, escapeUnprintable } from "../lib/terminal.js";

type Entry = Readonly<Record<string, unknown>>;

/** Formats a JSON log line for people. */
export function formatLogLine(line: string, colors: Colors): string {
  const entry = parseEntry(line);
  if (!entry) {
    return line;
  }
  const { level, time, err, ...fields } = entry;
  const { summary, details } =
    "method" in fields ? summarizeRequest(fields, colors) : summarize(fields);
  const parts = [
    colors.dim(new Date(String(time)).toTimeString().slice(0, 8)),
    paintLevel(String(level), colors),
    ...summary,
    ...Object.entries(details).map(([name, value]) => colors.dim(`${name}=${escapeValue(value)}`)),
  ];
  return parts.join("  ") + formatError(err);
}

function parseEntry(line: string): Entry | undefined {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

interface Summary {
  readonly summary: readonly string[];
  readonly details: Entry;
}

function summarize({ msg, ...details }: Entry): Summary {
  return { summary: msg === undefined ? [] : [escapeValue(msg)], details };
}

/** Only a request that failed keeps its other fields, such as its id and the caller. */
function summarizeRequest(entry: Entry, { good, warn }: Colors): Summary {
  const { method, path, status, code, duration_ms, ...details } = entry;
  const isOk = code === "ok" || (code === undefined && Number(status) < 400);
  const name = escapeValue(method).replace(/^latchkey\.v1\./, "");
  const outcome = escapeValue([status, code].filter((it) => it !== undefined).join(" "));
  return {
    summary: [
      path === undefined ? name : `${name} ${escapeValue(path)}`,
      (isOk ? good : warn)(outcome),
      `${Number(duration_ms).toFixed(1)} ms`,
    ],
    details: isOk ? {} : details,
  };
}

function paintLevel(level: string, { dim, warn, bad }: Colors): string {
  const paint = level === "warn" ? warn : /^(error|fatal)$/.test(level) ? bad : dim;
  return paint(level.toUpperCase().padEnd(5));
}

/** The stack of an error, on lines of its own. */
function formatError(err: unknown): string {
  const { stack, message } = Object(err);
  const lines = String(stack ?? message ?? "").split("\n");
  return lines.map((line) => (line === "" ? "" : `\n    ${escapeUnprintable(line)}`)).join("");
}

/** Callers choose paths and methods, which must not control the terminal. */
function escapeValue(value: unknown): string {
  return escapeUnprintable(typeof value === "object" ? JSON.stringify(value) : String(value));
}

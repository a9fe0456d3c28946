import { type ImportOutcome, importOutcomes } from "../store/port/transfer.js";
import { type RecordKind, recordKinds } from "./format.js";

/** Collects the outcomes of an import. */
export interface ImportReport {
  add(kind: RecordKind, outcome: Outcome): void;
  /** Adds a record that was not written because of a conflict with the store. */
  addConflict(kind: RecordKind, line: number, id: string, outcome: "differs" | "taken"): void;
  /** Adds a line that is invalid. */
  addInvalidLine(line: number, message: string): void;
  /** Adds an application that was imported although the API would refuse it. */
  addWarning(line: number, id: string, message: string): void;
  /** Adds an error of the file as a whole. */
  addError(message: string): void;

  isEmpty(): boolean;
  /** Whether the whole file was imported. */
  isSuccess(): boolean;
  /** Errors and warnings, one per line. */
  messages(): string[];
  summary(dryRun: boolean): string;
  /** The summary as JSON. */
  toJson(dryRun: boolean): Readonly<Record<string, unknown>>;
}

/** The outcome of a record. Expired records are not sent to the store. */
type Outcome = ImportOutcome | "expired";

const words: Readonly<Record<Outcome, string>> = {
  added: "added",
  same: "already there",
  replaced: "replaced",
  differs: "different and not replaced",
  kept: "revoked or expired here and not restored",
  taken: "with a key of another application",
  ownerless: "without their application",
  expired: "expired",
};

const conflictWords = {
  differs: "already exists and differs",
  taken: "has a foreign key of another application",
} as const;

/** Messages listed for each kind of error. */
const maxListed = 20;

export function createImportReport(): ImportReport {
  const counts = new Map<string, number>();
  const conflicts = createList("more conflicts with stored records");
  const faults = createList("more invalid lines");
  const oddities = createList("more applications that the API would refuse");
  const troubles: string[] = [];

  const countOf = (kind: RecordKind, outcome: Outcome) => counts.get(`${kind} ${outcome}`) ?? 0;

  function note(kind: RecordKind, outcome: Outcome): void {
    counts.set(`${kind} ${outcome}`, countOf(kind, outcome) + 1);
  }

  const outcomesOf = (kind: RecordKind) =>
    [...importOutcomes, "expired" as const]
      .map((outcome) => ({ outcome, count: countOf(kind, outcome) }))
      .filter(({ outcome, count }) => outcome === "added" || count > 0);

  function summaryOf(kind: RecordKind): string {
    const parts = outcomesOf(kind).map(({ outcome, count }) => `${count} ${words[outcome]}`);
    return `${`${kind}s`.padEnd(14)}${parts.join(", ")}\n`;
  }

  const isGood = () => conflicts.size() + faults.size() + troubles.length === 0;

  return {
    add: note,

    addConflict(kind, line, id, outcome) {
      note(kind, outcome);
      conflicts.add(`line ${line}: the ${kind} ${id} ${conflictWords[outcome]}`);
    },

    addInvalidLine: (line, message) => faults.add(`line ${line}: ${message}`),
    addWarning: (line, id, message) =>
      oddities.add(
        `line ${line}: the application ${id} is imported, although the API would refuse it (${message})`,
      ),
    addError: (message) => void troubles.push(message),

    isEmpty: () => counts.size === 0 && isGood(),
    isSuccess: isGood,
    messages: () => [...faults.list(), ...conflicts.list(), ...troubles, ...oddities.list()],

    summary(dryRun) {
      const bad = faults.size() > 0 ? `${"bad lines".padEnd(14)}${faults.size()}\n` : "";
      const note = dryRun ? "Dry run: nothing was written.\n" : "";
      return recordKinds.map(summaryOf).join("") + bad + note;
    },

    toJson(dryRun) {
      const byKind = recordKinds.map((kind) => {
        const entries = outcomesOf(kind).map(({ outcome, count }) => [outcome, count]);
        return [`${kind}s`, Object.fromEntries(entries)];
      });
      return { ...Object.fromEntries(byKind), bad_lines: faults.size(), dry_run: dryRun };
    },
  };
}

/** The first messages, and how many more there are. */
function createList(rest: string) {
  const lines: string[] = [];
  let count = 0;
  return {
    add(line: string): void {
      count++;
      if (lines.length < maxListed) {
        lines.push(line);
      }
    },
    size: () => count,
    list: () => (count > lines.length ? [...lines, `${count - lines.length} ${rest}`] : lines),
  };
}

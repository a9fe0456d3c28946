import { type ImportOutcome, importOutcomes } from "../store/port/transfer.js";
import { type RecordKind, recordKinds } from "./format.js";

/** What an import comes to. */
export interface ImportReport {
  note(kind: RecordKind, outcome: Outcome): void;
  /** Notes a record that is not written, as it does not go with what is there. */
  noteConflict(kind: RecordKind, line: number, id: string, outcome: "differs" | "taken"): void;
  /** Notes what is wrong with a line. */
  noteFault(line: number, what: string): void;
  /** Notes an application that is imported though it could not be made so today. */
  noteOddity(line: number, id: string, what: string): void;
  /** Notes what is wrong with the file as a whole. */
  noteTrouble(what: string): void;

  /** Whether nothing was noted. */
  isEmpty(): boolean;
  /** Whether all of the file is in the store. */
  isGood(): boolean;
  /** What is to be looked at, a line each; the first of each kind. */
  troubles(): string[];
  summary(dryRun: boolean): string;
  /** The same, for programs. */
  facts(dryRun: boolean): Readonly<Record<string, unknown>>;
}

/** What became of a record, which may never have reached the store. */
export type Outcome = ImportOutcome | "expired";

const words: Readonly<Record<Outcome, string>> = {
  added: "added",
  same: "there already",
  replaced: "replaced",
  differs: "different and left as they are",
  kept: "ended here and not restored",
  taken: "with a key of another application",
  ownerless: "without their application",
  expired: "expired",
};

const conflictWords = {
  differs: "is there and differs",
  taken: "has a foreign key that another application has",
} as const;

/** How many of the same kind of trouble are told one by one. */
const mostTold = 20;

export function createImportReport(): ImportReport {
  const counts = new Map<string, number>();
  const conflicts = createList("more that do not go with what is there");
  const faults = createList("more lines that cannot be read");
  const oddities = createList("more that the API would refuse today");
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
    const told = outcomesOf(kind).map(({ outcome, count }) => `${count} ${words[outcome]}`);
    return `${`${kind}s`.padEnd(14)}${told.join(", ")}\n`;
  }

  const isGood = () => conflicts.size() + faults.size() + troubles.length === 0;

  return {
    note,

    noteConflict(kind, line, id, outcome) {
      note(kind, outcome);
      conflicts.add(`line ${line}: the ${kind} ${id} ${conflictWords[outcome]}`);
    },

    noteFault: (line, what) => faults.add(`line ${line}: ${what}`),
    noteOddity: (line, id, what) =>
      oddities.add(
        `line ${line}: the application ${id} is taken as it is, though the API would refuse it today (${what})`,
      ),
    noteTrouble: (what) => void troubles.push(what),

    isEmpty: () => counts.size === 0 && isGood(),
    isGood,
    troubles: () => [...faults.told(), ...conflicts.told(), ...troubles, ...oddities.told()],

    summary(dryRun) {
      const bad = faults.size() > 0 ? `${"bad lines".padEnd(14)}${faults.size()}\n` : "";
      const note = dryRun ? "This was a dry run: nothing is written.\n" : "";
      return recordKinds.map(summaryOf).join("") + bad + note;
    },

    facts(dryRun) {
      const byKind = recordKinds.map((kind) => {
        const told = outcomesOf(kind).map(({ outcome, count }) => [outcome, count]);
        return [`${kind}s`, Object.fromEntries(told)];
      });
      return { ...Object.fromEntries(byKind), bad_lines: faults.size(), dry_run: dryRun };
    },
  };
}

/** The first of many lines, and how many more there are. */
function createList(rest: string) {
  const lines: string[] = [];
  let count = 0;
  return {
    add(line: string): void {
      count++;
      if (lines.length < mostTold) {
        lines.push(line);
      }
    },
    size: () => count,
    told: () => (count > lines.length ? [...lines, `${count - lines.length} ${rest}`] : lines),
  };
}

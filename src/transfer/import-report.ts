import { type ImportOutcome, importOutcomes } from "../store/port/transfer.js";
import { type RecordKind, recordKinds } from "./format.js";

/** Collects the outcomes of an import. */
export interface ImportReport {
  add(kind: RecordKind, outcome: Outcome): void;
  /** Adds a record that was not written because of a conflict with the store. */
  addConflict(kind: RecordKind, line: number, id: string, outcome: Conflict): void;
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

const outcomeTexts: Readonly<Record<Outcome, string>> = {
  added: "added",
  same: "unchanged",
  replaced: "replaced",
  differs: "different and not replaced",
  not_restored: "revoked or expired here and not restored",
  key_taken: "with a key of another application",
  external_id_taken: "with an external id of another application",
  ownerless: "without their application",
  expired: "expired",
};

type Conflict = "differs" | "key_taken" | "external_id_taken";

export function isConflict(outcome: ImportOutcome): outcome is Conflict {
  return outcome === "differs" || outcome === "key_taken" || outcome === "external_id_taken";
}

/** Stored events are never replaced. */
function describeConflict(kind: RecordKind, outcome: Conflict, replace: boolean): string {
  if (outcome === "key_taken") {
    return "has a key that another application already uses; remove it from one of them";
  }
  if (outcome === "external_id_taken") {
    return "has an external id that another application of its tenant already has; change one of them (applications cannot swap external ids in one import)";
  }
  const hint = replace || kind === "event" ? "" : "; pass --replace to overwrite it";
  return `already exists and differs${hint}`;
}

/** Messages listed for each kind of error. */
const maxListed = 20;

export function createImportReport({ replace }: { readonly replace: boolean }): ImportReport {
  const counts = new Map<string, number>();
  const conflicts = createList("more conflicts with stored records");
  const invalidLines = createList("more invalid lines");
  const warnings = createList("more applications that the API would refuse");
  const errors: string[] = [];

  const countOf = (kind: RecordKind, outcome: Outcome) => counts.get(`${kind} ${outcome}`) ?? 0;

  function count(kind: RecordKind, outcome: Outcome): void {
    counts.set(`${kind} ${outcome}`, countOf(kind, outcome) + 1);
  }

  const outcomesOf = (kind: RecordKind) =>
    [...importOutcomes, "expired" as const]
      .map((outcome) => ({ outcome, count: countOf(kind, outcome) }))
      .filter(({ outcome, count }) => outcome === "added" || count > 0);

  function summaryOf(kind: RecordKind): string {
    const parts = outcomesOf(kind).map(({ outcome, count }) => `${count} ${outcomeTexts[outcome]}`);
    return `${`${kind}s`.padEnd(14)}${parts.join(", ")}\n`;
  }

  const isSuccess = () => conflicts.size() + invalidLines.size() + errors.length === 0;

  return {
    add: count,

    addConflict(kind, line, id, outcome) {
      count(kind, outcome);
      conflicts.add(`line ${line}: the ${kind} ${id} ${describeConflict(kind, outcome, replace)}`);
    },

    addInvalidLine: (line, message) => invalidLines.add(`line ${line}: ${message}`),
    addWarning: (line, id, message) =>
      warnings.add(
        `line ${line}: the application ${id} is imported, although the API would refuse it (${message})`,
      ),
    addError: (message) => void errors.push(message),

    isEmpty: () => counts.size === 0 && isSuccess(),
    isSuccess,
    messages: () => [...invalidLines.list(), ...conflicts.list(), ...errors, ...warnings.list()],

    summary(dryRun) {
      const invalid =
        invalidLines.size() > 0 ? `${"invalid lines".padEnd(14)}${invalidLines.size()}\n` : "";
      const note = dryRun ? "Dry run: nothing was written.\n" : "";
      return recordKinds.map(summaryOf).join("") + invalid + note;
    },

    toJson(dryRun) {
      const byKind = recordKinds.map((kind) => {
        const entries = outcomesOf(kind).map(({ outcome, count }) => [outcome, count]);
        return [`${kind}s`, Object.fromEntries(entries)];
      });
      return { ...Object.fromEntries(byKind), invalid_lines: invalidLines.size(), dry_run: dryRun };
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

import type { ImportOutcome } from "../store/transfer.js";
import type { Item } from "./format.js";

/** What would become of a record, by what the store answers in a dry run. */
export type Foresee = (item: Item, outcome: ImportOutcome) => ImportOutcome;

/** Remembers what would be in the store by now: it makes a difference to what comes later in the file. */
export function createForesight(): Foresee {
  const applications = new Set<string>();
  /** The applications that foreign keys would belong to, by the hash of the key. */
  const owners = new Map<string, string>();

  return (item, outcome) => {
    if (item.kind === "session") {
      const isComing = outcome === "ownerless" && applications.has(item.record.applicationId);
      return isComing ? "added" : outcome;
    }
    if (item.kind === "event" || (outcome !== "added" && outcome !== "replaced")) {
      return outcome;
    }
    const { id, keys } = item.record;
    const hashes = keys.filter(({ foreign }) => foreign).map(({ hash }) => textOf(hash));
    if (hashes.some((hash) => (owners.get(hash) ?? id) !== id)) {
      return "taken";
    }
    applications.add(id);
    for (const hash of hashes) {
      owners.set(hash, id);
    }
    return outcome;
  };
}

function textOf(hash: Uint8Array): string {
  return Buffer.from(hash).toString("base64");
}

import { randomUUID } from "node:crypto";
import type { RootDatabase } from "lmdb";
import { idFromBytes } from "../../lib/uuid.js";
import { createApplicationFacts } from "./application-facts.js";
import { applicationLayout } from "./application-row.js";
import type { Tables } from "./environment.js";
import { endKey, idAtEnd, momentOf, noKeyId, nothing } from "./keys.js";
import { createRecords } from "./records.js";
import { createSessionIndex } from "./session-index.js";
import { sessionLayout } from "./session-row.js";

/** Rows gone over in one transaction: others may be serving from the folder already. */
const batchSize = 1_000;

/**
 * Gives a folder that is new or of an older schema what it lacks, and answers
 * its id. The schema is raised when all is there: one who is stopped halfway,
 * or overtaken, has done nothing that the next would not do again.
 */
export async function upgrade(
  root: RootDatabase<Buffer, Buffer>,
  tables: Tables,
  schema: number,
): Promise<string> {
  const { meta } = tables;
  const isBehind = () => Number(meta.get("schema") ?? 0) < schema;
  const id = meta.get("id");
  if (id !== undefined && !isBehind()) {
    return id;
  }
  await fillIndexes(root, tables);
  return root.childTransaction(() => {
    const id = meta.get("id") ?? randomUUID();
    if (isBehind()) {
      meta.put("schema", String(schema));
      meta.put("id", id);
    }
    return id;
  });
}

/** Of what an older schema lacks, its tables tell all that has to be found. */
async function fillIndexes(root: RootDatabase, tables: Tables): Promise<void> {
  const { ends, applicationEnds, byTenant, sessionEnds } = tables;
  const applications = createRecords(tables.applications, applicationLayout);
  const facts = createApplicationFacts(tables);
  const sessions = createRecords(tables.sessions, sessionLayout);
  const index = createSessionIndex(tables);

  await goOver(root, applicationEnds, (key) => {
    ends.put(endKey(momentOf(key), idFromBytes(idAtEnd(key)), noKeyId), nothing);
  });
  await goOver(root, byTenant, (key) => {
    const application = applications.find(idFromBytes(idAtEnd(key)));
    if (application) {
      facts.add(application);
    }
  });
  await goOver(root, sessionEnds, (key) => {
    const session = sessions.find(idFromBytes(idAtEnd(key)));
    if (session) {
      index.add(session);
    }
  });
}

async function goOver(
  root: RootDatabase,
  table: Tables["sessionEnds"],
  visit: (key: Buffer) => void,
): Promise<void> {
  let last: Buffer | undefined;
  do {
    const start = last ? { start: last, exclusiveStart: true } : {};
    last = await root.childTransaction(() => {
      const keys = [...table.getKeys({ ...start, limit: batchSize })];
      keys.forEach(visit);
      return keys[batchSize - 1];
    });
  } while (last);
}

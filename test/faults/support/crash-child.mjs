/**
 * A process that writes to an embedded store until it is killed, as quick to
 * start as can be:
 *
 *     node test/faults/support/crash-child.mjs <folder> <tenant>
 *
 * It tells in lines of JSON what it begins, and what was acknowledged.
 */
import { randomUUID } from "node:crypto";
import { writeSync } from "node:fs";
import { newId } from "../../../dist/src/lib/uuid.js";
import { openLmdbStore } from "../../../dist/src/store/lmdb/store.js";

const [, , path, tenantId] = process.argv;
const tell = (line) => writeSync(1, `${JSON.stringify(line)}\n`);
const hash = () => Buffer.from(randomUUID());
const trail = (kind) => ({
  entriesFor: ({ id, applicationId }) => ({
    events: [
      {
        tenantId,
        kind,
        outcome: "success",
        actor: {},
        target: applicationId ? { applicationId, sessionId: id } : { applicationId: id },
        method: "test",
        requestId: "test",
        address: "",
      },
    ],
  }),
});

const store = await openLmdbStore({ path, sweepInterval: 20 });
tell({ opened: true });

/** Tells of a change before and after. */
async function change(kind, id, value, work, applicationId) {
  const told = { kind, id, value, applicationId };
  tell(told);
  await work();
  tell({ ...told, isDone: true });
}

async function live(round) {
  const id = newId(Date.now());
  const key = { id: newId(Date.now()), hash: hash() };
  const grants = { permissions: ["token:read"], rules: [] };
  await change("created", id, "0", () =>
    store.applications.create(
      { id, tenantId, name: "0", type: "public", key, ...grants },
      trail("created"),
    ),
  );
  for (const name of ["1", "2"]) {
    await change("updated", id, name, () =>
      store.applications.update(tenantId, id, () => ({ name, modifiedBy: id }), trail("updated")),
    );
  }
  const keyId = newId(Date.now());
  await change("rekeyed", id, keyId, () =>
    store.applications.update(
      tenantId,
      id,
      (_, now) => ({ keys: [{ id: keyId, hash: hash(), createdAt: now }], modifiedBy: id }),
      trail("rekeyed"),
    ),
  );
  const session = { id: newId(Date.now()), tenantId, applicationId: id, ttl: 3_600_000 };
  const nonceHash = hash();
  await store.sessions.create({ ...session, keyHash: hash(), nonceHash });
  const authorize = () =>
    store.sessions.authorize(
      { sessionId: session.id, tenantId, nonceHashes: [nonceHash], authorizedBy: id, ...grants },
      trail("authorized"),
    );
  await change("authorized", session.id, nonceHash.toString(), authorize, id);
  if (round % 3 === 0) {
    await change("deleted", id, "", () =>
      store.applications.delete(tenantId, id, undefined, trail("deleted")),
    );
  }
}

async function keepLiving() {
  for (let round = 0; ; round++) {
    await live(round);
  }
}

await Promise.all(Array.from({ length: 6 }, keepLiving));

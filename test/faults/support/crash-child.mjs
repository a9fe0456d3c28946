/**
 * Writes to an embedded store until it is killed. It imports little, to start fast:
 *
 *     node test/faults/support/crash-child.mjs <folder> <tenant>
 *
 * It reports each change as a line of JSON before it starts and after it was acknowledged.
 */
import { randomBytes } from "node:crypto";
import { writeSync } from "node:fs";
import { newId } from "../../../dist/src/lib/uuid.js";
import { openLmdbStore } from "../../../dist/src/store/lmdb/store.js";

const [, , path, tenantId] = process.argv;
const report = (value) => writeSync(1, `${JSON.stringify(value)}\n`);
const hash = () => randomBytes(32);
const audit = (kind) => ({
  eventFor: ({ id, applicationId }) => ({
    tenantId,
    kind,
    outcome: "success",
    actor: {},
    target: applicationId ? { applicationId, sessionId: id } : { applicationId: id },
    method: "test",
    requestId: "test",
    address: "",
  }),
});

const store = await openLmdbStore({ path, sweepInterval: 20 });
report({ opened: true });

async function change(kind, id, value, work, applicationId) {
  const line = { kind, id, value, applicationId };
  report(line);
  await work();
  report({ ...line, isDone: true });
}

async function runLifecycle(round) {
  const id = newId(Date.now());
  const key = { id: newId(Date.now()), hash: hash() };
  const grants = { permissions: ["token:read"], rules: [] };
  await change("created", id, "0", () =>
    store.applications.create(
      { id, tenantId, name: "0", type: "public", key, ...grants },
      audit("created"),
    ),
  );
  for (const name of ["1", "2"]) {
    await change("updated", id, name, () =>
      store.applications.update(tenantId, id, () => ({ name, modifiedBy: id }), audit("updated")),
    );
  }
  const keyId = newId(Date.now());
  await change("rekeyed", id, keyId, () =>
    store.applications.update(
      tenantId,
      id,
      (_, now) => ({ keys: [{ id: keyId, hash: hash(), createdAt: now }], modifiedBy: id }),
      audit("rekeyed"),
    ),
  );
  const session = { id: newId(Date.now()), tenantId, applicationId: id, ttl: 3_600_000 };
  const nonceHash = hash();
  const networkHash = hash().subarray(0, 8);
  await store.sessions.create({ ...session, keyHash: hash(), nonceHash, networkHash });
  const authorize = () =>
    store.sessions.authorize(
      { sessionId: session.id, tenantId, nonceHashes: [nonceHash], authorizedBy: id, ...grants },
      audit("authorized"),
    );
  await change("authorized", session.id, nonceHash.toString(), authorize, id);
  if (round % 3 === 0) {
    await change("deleted", id, "", () =>
      store.applications.delete(tenantId, id, audit("deleted")),
    );
  }
}

async function writeForever() {
  for (let round = 0; ; round++) {
    await runLifecycle(round);
  }
}

await Promise.all(Array.from({ length: 6 }, writeForever));

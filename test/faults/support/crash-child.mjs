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
import {
  authorizedSession,
  changedApplication,
  newApplication,
  newSession,
} from "../../../dist/src/store/port/records.js";

const [, , path, tenantId] = process.argv;
const report = (value) => writeSync(1, `${JSON.stringify(value)}\n`);
const hash = () => randomBytes(32);
const event = (kind, target) => ({
  tenantId,
  kind,
  outcome: "success",
  actor: {},
  target,
  method: "test",
  requestId: "test",
  address: "",
});

const store = await openLmdbStore({ path, sweepInterval: 20 });
report({ opened: true });

async function change(kind, id, value, work, applicationId) {
  const line = { kind, id, value, applicationId };
  report(line);
  await work();
  report({ ...line, isDone: true });
}

/** Makes a change of an application. Null instead of fields deletes it. */
function changeApplication(kind, id, fieldsOf) {
  return store.change({
    target: { kind: "application", id },
    reads: {},
    decide({ target }, now) {
      const fields = fieldsOf(now);
      return {
        put: fields && changedApplication(target, { ...fields, modifiedBy: id }, now),
        event: event(kind, { applicationId: id }),
      };
    },
  });
}

async function runLifecycle(round) {
  const id = newId(Date.now());
  const key = { id: newId(Date.now()), hash: hash() };
  const grants = { permissions: ["token:read"], rules: [] };
  await change("created", id, "0", () =>
    store.change({
      target: { kind: "application", id },
      creates: true,
      reads: {},
      decide: (_, now) => ({
        put: newApplication({ id, tenantId, name: "0", type: "public", key, ...grants }, now),
        event: event("created", { applicationId: id }),
      }),
    }),
  );
  for (const name of ["1", "2"]) {
    await change("updated", id, name, () => changeApplication("updated", id, () => ({ name })));
  }
  const keyId = newId(Date.now());
  const newKeys = (now) => ({ keys: [{ id: keyId, hash: hash(), createdAt: now }] });
  await change("rekeyed", id, keyId, () => changeApplication("rekeyed", id, newKeys));
  const sessionId = newId(Date.now());
  const nonceHash = hash();
  const opened = {
    id: sessionId,
    tenantId,
    applicationId: id,
    ttl: 3_600_000,
    keyHash: hash(),
    nonceHash,
    networkHash: hash().subarray(0, 8),
  };
  const target = { kind: "session", id: sessionId };
  await store.change({
    target,
    creates: true,
    reads: {},
    decide: (_, now) => ({ put: newSession(opened, 0, now) }),
  });
  const authorizer = { id, authorizationEpoch: 0 };
  const authorize = () =>
    store.change({
      target,
      reads: {},
      decide: ({ target: { session } }, now) => ({
        put: authorizedSession(session, { ...grants, authorizer }, now),
        event: event("authorized", { applicationId: id, sessionId }),
      }),
    });
  await change("authorized", sessionId, nonceHash.toString(), authorize, id);
  if (round % 3 === 0) {
    await change("deleted", id, "", () => changeApplication("deleted", id, () => null));
  }
}

async function writeForever() {
  for (let round = 0; ; round++) {
    await runLifecycle(round);
  }
}

await Promise.all(Array.from({ length: 6 }, writeForever));

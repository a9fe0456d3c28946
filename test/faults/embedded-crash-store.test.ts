import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { expect, it } from "@jest/globals";
import { repetitions } from "../support/jest/suite.js";
import { useLmdbFolder } from "../support/lmdb/folder.js";
import { useChildren } from "../support/service/child-process.js";
import { audit } from "../support/store/audit.js";
import type { OperableStore } from "../support/store/operations.js";
import { createRandom } from "./support/random.js";

const folder = useLmdbFolder();
const start = useChildren();
const kills = repetitions({ quick: 5, full: 8 });
/** The maximum number of lines before a kill. Each change has two. */
const maxLines = 400;

/** A change that was started, and whether it was acknowledged. */
interface Change {
  readonly kind: string;
  readonly id: string;
  readonly value: string;
  /** The application of a session. */
  readonly applicationId?: string;
  readonly isDone?: true;
}

/** The acknowledged changes of a record, and one without an acknowledgement, which may have taken effect. */
interface History {
  readonly done: Change[];
  pending?: Change | undefined;
}

function groupByRecord(lines: readonly Change[]): Map<string, History> {
  const histories = new Map<string, History>();
  for (const line of lines) {
    const history = histories.get(line.id) ?? { done: [] };
    histories.set(line.id, history);
    if (line.isDone) {
      history.done.push(line);
    }
    history.pending = line.isDone ? undefined : line;
  }
  return histories;
}

it("reopens an embedded store with all acknowledged writes after its process was killed", async () => {
  const random = createRandom(3);
  const tenantId = randomUUID();
  const reported = new Set<string>();
  let checked = 0;
  for (let kill = 0; kill < kills; kill++) {
    const child = join(__dirname, "support", "crash-child.mjs");
    const writer = start([process.execPath, [child, folder.path(), tenantId]]);
    await writer.line(1 + Math.floor(random() * maxLines));
    await writer.kill();
    const [, ...lines] = writer.lines();

    const store = await folder.open();
    const histories = groupByRecord(lines);
    for (const [id, history] of histories) {
      const owner = histories.get(getOwner(history) ?? "");
      await (owner
        ? expectSession(store, tenantId, id, history, owner)
        : expectApplication(store, tenantId, id, history));
      checked++;
    }
    for (const id of histories.keys()) {
      reported.add(id);
    }
    await expectConsistentLists(store, tenantId, reported);
    await store.ping();
    await store.close();
  }
  expect(checked).toBeGreaterThan(kills);
});

const getOwner = ({ done, pending }: History) => (done[0] ?? pending)?.applicationId;

async function expectApplication(
  store: OperableStore,
  tenantId: string,
  id: string,
  history: History,
) {
  const found = await store.applications.find(id);
  const state = {
    created: found && "0",
    updated: found?.name,
    rekeyed: found?.keys[0]?.id,
    deleted: found ? undefined : "",
  };
  const { done, pending } = history;
  const tookEffect = pending && state[pending.kind as keyof typeof state] === pending.value;
  const effective = tookEffect ? [...done, pending] : done;
  const last = (kind: string) => effective.findLast((change) => change.kind === kind)?.value;
  if (last("created") === undefined || last("deleted") !== undefined) {
    expect(found).toBeUndefined();
  } else {
    expect(found?.name).toBe(last("updated") ?? "0");
    expect(found?.keys.map((key) => key.id)).toEqual([last("rekeyed") ?? expect.any(String)]);
  }
  const { items } = await store.events.list({ tenantId, target: id, size: 100 });
  const kinds = items
    .filter(({ target }) => target.sessionId === undefined)
    .map(({ kind }) => kind);
  expect(kinds.reverse()).toEqual(effective.map(({ kind }) => kind));
}

async function expectSession(
  store: OperableStore,
  tenantId: string,
  id: string,
  { done }: History,
  owner: History,
) {
  const found = await store.sessions.find(id);
  const isOwnerDeleted = owner.done.some(({ kind }) => kind === "deleted");
  if (!found) {
    // Its creation was acknowledged, so only the deletion of its application can remove it.
    expect(isOwnerDeleted || owner.pending?.kind === "deleted").toBe(true);
    return;
  }
  expect(isOwnerDeleted).toBe(false);
  const { session, application } = found;
  const isNonceUsed = session.authorizedAt !== undefined;
  // A started change may have taken effect. An acknowledged one must have.
  if (done.length > 0) {
    expect(isNonceUsed).toBe(true);
  }
  const grant = {
    sessionId: id,
    tenantId,
    nonceHashes: [session.nonceHash],
    authorizedBy: application.id,
    permissions: [],
    rules: [],
  };
  expect(await store.sessions.authorize(grant, audit.authorized)).toBe(
    isNonceUsed ? "used" : "authorized",
  );
  const { items } = await store.events.list({ tenantId, target: id, size: 100 });
  const kinds = items.map(({ kind }) => kind).filter((kind) => kind === "authorized");
  expect(kinds).toEqual(isNonceUsed ? ["authorized"] : []);
}

/** Expects lists and lookups to agree: a row and its indexes were written together or not at all. */
async function expectConsistentLists(
  store: OperableStore,
  tenantId: string,
  reported: ReadonlySet<string>,
) {
  const [applications, sessions] = [new Set<string>(), new Set<string>()];
  for (const id of reported) {
    if (await store.applications.find(id)) {
      applications.add(id);
    } else if (await store.sessions.find(id)) {
      sessions.add(id);
    }
  }
  for (const filter of [undefined, { type: "public" as const }]) {
    const query = { tenantId, size: 10_000, from: { page: 1 } };
    const { items, total } = await store.applications.list({ ...query, ...(filter && { filter }) });
    expect(new Set(items.map(({ id }) => id))).toEqual(applications);
    expect(total).toBe(applications.size);
  }
  const { items } = await store.sessions.list({ tenantId, size: 10_000 });
  const listed = items.map(({ session }) => session.id);
  // Sessions are reported only when they are authorized.
  expect(listed.filter((id) => reported.has(id)).sort()).toEqual([...sessions].sort());
}

import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { expect, it } from "@jest/globals";
import type { Store } from "../../src/store/port/store.js";
import { repetitions } from "../support/jest/suite.js";
import { useLmdbFolder } from "../support/lmdb/folder.js";
import { useChildren } from "../support/service/child-process.js";
import { createRandom } from "./support/random.js";

const folder = useLmdbFolder();
const start = useChildren();
const kills = repetitions({ quick: 5, full: 12 });
/** How many lines it writes at most before it is killed; there are two for each change. */
const mostLines = 400;

/** A change that was begun, and whether it was acknowledged. */
interface Told {
  readonly kind: string;
  readonly id: string;
  readonly value: string;
  /** Of what belongs to an application: the id of that. */
  readonly applicationId?: string;
  readonly isDone?: true;
}

/** What was told of a record: the changes that were acknowledged, and one that may have been made. */
interface History {
  readonly done: Told[];
  doubt?: Told | undefined;
}

function historiesOf(lines: readonly Told[]): Map<string, History> {
  const histories = new Map<string, History>();
  for (const line of lines) {
    const history = histories.get(line.id) ?? { done: [] };
    histories.set(line.id, history);
    if (line.isDone) {
      history.done.push(line);
    }
    history.doubt = line.isDone ? undefined : line;
  }
  return histories;
}

it("reopens an embedded store with all acknowledged writes after its process was killed", async () => {
  const random = createRandom(3);
  const tenantId = randomUUID();
  const told = new Set<string>();
  let seen = 0;
  for (let kill = 0; kill < kills; kill++) {
    const child = join(__dirname, "support", "crash-child.mjs");
    const writer = start([process.execPath, [child, folder.path(), tenantId]]);
    await writer.line(1 + Math.floor(random() * mostLines));
    await writer.kill();
    const [, ...lines] = writer.lines();

    const store = await folder.open();
    const histories = historiesOf(lines);
    for (const [id, history] of histories) {
      const owner = histories.get(ownerOf(history) ?? "");
      await (owner
        ? expectSession(store, tenantId, id, history, owner)
        : expectApplication(store, tenantId, id, history));
      seen++;
    }
    for (const id of histories.keys()) {
      told.add(id);
    }
    await expectWholeLists(store, tenantId, told);
    await store.ping();
    await store.close();
  }
  expect(seen).toBeGreaterThan(kills);
}, 300_000);

/** The application that a session belongs to. */
const ownerOf = ({ done, doubt }: History) => (done[0] ?? doubt)?.applicationId;

async function expectApplication(store: Store, tenantId: string, id: string, history: History) {
  const found = await store.applications.find(id);
  const state = {
    created: found && "0",
    updated: found?.name,
    rekeyed: found?.keys[0]?.id,
    deleted: found ? undefined : "",
  };
  const { done, doubt } = history;
  const isMade = doubt && state[doubt.kind as keyof typeof state] === doubt.value;
  const made = isMade ? [...done, doubt] : done;
  const last = (kind: string) => made.findLast((told) => told.kind === kind)?.value;
  if (last("created") === undefined || last("deleted") !== undefined) {
    expect(found).toBeUndefined();
  } else {
    expect(found?.name).toBe(last("updated") ?? "0");
    expect(found?.keys.map((key) => key.id)).toEqual([last("rekeyed") ?? expect.any(String)]);
  }
  const { items } = await store.events.list({ tenantId, target: id, size: 100 });
  const told = items.filter(({ target }) => target.sessionId === undefined).map(({ kind }) => kind);
  expect(told.reverse()).toEqual(made.map(({ kind }) => kind));
}

async function expectSession(
  store: Store,
  tenantId: string,
  id: string,
  { done }: History,
  owner: History,
) {
  const found = await store.sessions.find(id);
  const isOwnerDeleted = owner.done.some(({ kind }) => kind === "deleted");
  if (!found) {
    // It was acknowledged before anything was told of it, and goes with its application alone.
    expect(isOwnerDeleted || owner.doubt?.kind === "deleted").toBe(true);
    return;
  }
  expect(isOwnerDeleted).toBe(false);
  const { session, application } = found;
  const isSpent = session.authorizedAt !== undefined;
  // What was begun may have been done; what was acknowledged was.
  if (done.length > 0) {
    expect(isSpent).toBe(true);
  }
  const grant = {
    ...{ sessionId: id, tenantId, nonceHashes: [session.nonceHash] },
    ...{ authorizedBy: application.id, permissions: [], rules: [] },
  };
  expect(await store.sessions.authorize(grant)).toBe(isSpent ? "used" : "authorized");
  const { items } = await store.events.list({ tenantId, target: id, size: 100 });
  expect(items.map(({ kind }) => kind)).toEqual(isSpent ? ["authorized"] : []);
}

/** Expects that what is found by its id is listed, and what is not is not: the row and all indexes were written, or none was. */
async function expectWholeLists(store: Store, tenantId: string, told: ReadonlySet<string>) {
  const [applications, sessions] = [new Set<string>(), new Set<string>()];
  for (const id of told) {
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
  // Of those that are opened nothing is told before they are authorized.
  expect(listed.filter((id) => told.has(id)).sort()).toEqual([...sessions].sort());
}

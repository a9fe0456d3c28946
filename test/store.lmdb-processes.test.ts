import { spawnSync } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, jest } from "@jest/globals";
import { open } from "lmdb";
import { newId } from "../src/ids.js";
import { StoreUnavailable } from "../src/store/store.js";
import { anApplication, createBoth, must, times } from "./store-contract/fixtures.js";
import { scriptCommand, useChildren } from "./support/child.js";
import { useFollowers } from "./support/follow.js";
import { useLmdbFolder } from "./support/lmdb-folder.js";
import { openLog } from "./support/lmdb-log.js";

/** Only ends a hang, in milliseconds. */
const patience = 120_000;
jest.setTimeout(2 * patience);

const folder = useLmdbFolder();
const start = useChildren();
const follow = useFollowers();

/** The command line of another process on the same data. */
function child(task: string, argument = "") {
  return scriptCommand("lmdb-child.ts", task, folder.path(), argument);
}

/** Runs another process to its end, before anything else can happen in this one. */
function run(task: string, argument = "") {
  return spawnSync(...child(task, argument), { timeout: patience });
}

describe("what LMDB acknowledged", () => {
  it("was told in the log of changes, and nothing else was, when the process was killed", async () => {
    const writer = start(child("churn"));
    await writer.line(200);
    await writer.kill();
    const told = (what: string): string[] => writer.lines().flatMap((line) => line[what] ?? []);
    const opened = openLog(folder.path());
    const log = opened.entries();
    await opened.close();
    expect(log.map(({ number }) => number)).toEqual(times(log.length, (index) => index + 1));
    const store = await folder.open();

    const deleted = log.filter(({ kind }) => kind === "deleted");
    const deletedIds = new Set(deleted.map(({ applicationId }) => applicationId));
    for (const { applicationId } of deleted) {
      expect(await store.applications.find(applicationId)).toBeUndefined();
    }
    for (const id of told("created")) {
      expect((await store.applications.find(id)) === undefined).toBe(deletedIds.has(id));
    }

    const authorized = log.filter(({ kind }) => kind === "authorized");
    expect(authorized.map(({ sessionId }) => sessionId)).toEqual(
      expect.arrayContaining(told("authorized")),
    );
    for (const { applicationId, sessionId = "" } of authorized) {
      const found = await store.sessions.find(sessionId);
      expect(found?.session.authorizedAt !== undefined).toBe(!deletedIds.has(applicationId));
    }
  });

  const canTrace = spawnSync("strace", ["-f", "-o", "/dev/null", "true"]).status === 0;
  const claim = "was synced to the disk before, once for all that waited at the same time";
  if (canTrace) {
    it(claim, expectSyncs);
  } else {
    it.skip(`${claim}: not looked at, as strace is not there or may not trace`, expectSyncs);
  }

  async function expectSyncs(): Promise<void> {
    const [node, args] = child("markWrites");
    const file = join(folder.path(), "trace");
    const calls = "trace=openat,fdatasync,write,writev,pwrite64,pwritev";
    const strace = ["-f", "-y", "-s", "80", "-o", file, "-e", calls, node, ...args];
    expect(spawnSync("strace", strace, { timeout: patience }).status).toBe(0);
    const events = eventsOf(await readFile(file, "utf8"));
    for (const number of times(5, (index) => index)) {
      expect(events).toMatch(new RegExp(`<${number}>(write )+sync commit </${number}>`));
    }
    expect(events).toMatch(/<many>((write )+sync commit ){1,3}<\/many>/);
  }

  /** What a trace shows to have been done to the data, between the words of the process. */
  function eventsOf(trace: string): string {
    const durable = trace.match(/data\.mdb", O_\w+\|O_DSYNC.* = (\d+)/)?.[1];
    const commit = new RegExp(`pwrite64\\(${durable}<.* = \\d+$`);
    const begun = new Map<string, string>();
    const events = trace.split("\n").map((line) => {
      const thread = line.split(" ", 1)[0] ?? "";
      if (line.endsWith("<unfinished ...>")) {
        begun.set(thread, line);
        return "";
      }
      const call = line.includes(" resumed>") ? `${begun.get(thread)} ${line}` : line;
      const said = /write\(1<.*(called|acknowledged)\\":\\?"?(\w+)/.exec(call);
      if (said) {
        return said[1] === "called" ? `<${said[2]}>` : `</${said[2]}>`;
      }
      if (!call.includes("data.mdb>")) {
        return "";
      }
      if (/fdatasync\(.* = 0$/.test(call)) {
        return "sync ";
      }
      if (commit.test(call)) {
        return "commit ";
      }
      return /p?writev?(64)?\(/.test(call) ? "write " : "";
    });
    return events.join("");
  }
});

describe("processes that share the data in LMDB", () => {
  it("see each other's writes at once, even within one turn of the event loop", async () => {
    const store = await folder.open();
    const id = newId(Date.now());
    expect(await store.applications.find(id)).toBeUndefined();
    run("create", id);
    expect(await store.applications.find(id)).toBeDefined();
    run("rekey", id);
    const found = must(await store.applications.find(id));
    expect(Buffer.from(must(found.keys[0]).hash).toString()).toBe("replaced");
    await store.applications.delete(found.tenantId, id);
    expect(run("rekey", id).status).toBe(1);
  });

  it("authorize a session but once", async () => {
    const store = await folder.open();
    const { session } = await createBoth(store);
    const nonceHash = Buffer.from(session.nonceHash).toString("hex");
    const given = JSON.stringify({ ...session, nonceHash });
    const others = times(2, () => start(child("authorize", given)));
    for (const other of others) {
      await other.line(0);
    }
    for (const other of others) {
      other.write("now\n");
    }
    const outcomes = await Promise.all(others.map(async (other) => (await other.line(1)).outcomes));
    expect(outcomes.flat().sort()).toEqual(["authorized", ...times(49, () => "used")]);
  });

  it("tell their changes in the order in which these took effect", async () => {
    const store = await folder.open();
    const { id, tenantId } = await store.applications.create(anApplication({ name: "0" }));
    const follower = follow(store, tenantId);
    await follower.next();
    const others = times(2, () => start(child("alternate", id)));
    for (const other of others) {
      await other.line(0);
    }
    for (const other of others) {
      other.write("now\n");
    }
    await Promise.all(others.map((other) => other.line(1)));
    await store.applications.delete(tenantId, id);
    const changes = await follower.until(({ kind }) => kind === "deleted");
    const expected = times(100, (index) => (index % 2 ? "regenerated" : "updated"));
    expect(changes.map(({ kind }) => kind)).toEqual([...expected, "deleted"]);
  });

  it("are told what they missed where others prune the log under them", async () => {
    const store = await folder.open();
    const { id } = await store.applications.create(anApplication());
    const follower = follow(store, anApplication().tenantId);
    await follower.next();
    const waited = follower.next();
    expect(run("outlive", id).status).toBe(0);
    expect(await waited).toMatchObject({ changes: [], missed: true, position: "4" });
  });

  it("read while one holds up all writes, which are given up after the time set", async () => {
    const store = await folder.open({ writeTimeout: 1_000 });
    const { id, tenantId } = await store.applications.create(anApplication());
    const other = start(child("hold"));
    await other.line(0);
    const late = await store.applications.delete(tenantId, id).catch((error) => error);
    expect(late).toBeInstanceOf(StoreUnavailable);
    expect(late.cause).toBeDefined();
    expect(await store.applications.find(id)).toBeDefined();
    await other.kill();
    expect(await store.applications.create(anApplication())).toBeDefined();
    // What was given up is not made up for.
    expect(await store.applications.find(id)).toBeDefined();
  });

  it("need not close the store to end", async () => {
    const id = newId(Date.now());
    expect(run("leave", id).status).toBe(0);
    expect(run("follow", id).status).toBe(0);
    const store = await folder.open();
    expect(await store.applications.find(id)).toBeDefined();
  });
});

describe("a folder of the first schema", () => {
  it("is given what it lacks by the first of those that open it, and keeps what it has", async () => {
    const store = await folder.open();
    const created = await store.applications.create(anApplication());
    await store.close();
    const database = open({ path: folder.path(), noSubdir: false, overlappingSync: false });
    const meta = database.openDB({ name: "meta", encoding: "string" });
    await meta.put("schema", "1");
    await meta.remove("id");
    await database.openDB({ name: "changes" }).drop();
    await database.close();

    const others = times(4, () => start(child("identify")));
    const told = await Promise.all(others.map((other) => other.line(0)));
    const next = await folder.open();
    expect(next.id).not.toBe(store.id);
    expect(told).toEqual(times(4, () => ({ id: next.id })));
    expect(await next.applications.find(created.id)).toEqual(created);
    const follower = follow(next, created.tenantId);
    await follower.next();
    await next.applications.delete(created.tenantId, created.id);
    expect(await follower.next()).toMatchObject({ changes: [{ kind: "deleted" }], position: "1" });
  });
});

describe("LMDB on a full disk", () => {
  it("refuses writes, keeps what it acknowledged, and goes on when there is space", async () => {
    const [node, args] = child("fill");
    const limited = ["-c", 'ulimit -f 8000; exec "$@"', "sh", node, ...args];
    const filled = spawnSync("sh", limited, { encoding: "utf8", timeout: patience });
    expect(filled.status).toBe(0);
    const { created, found, failures } = JSON.parse(filled.stdout);
    expect(found).toBe(created.length);
    expect(new Set(failures)).toEqual(new Set(["StoreUnavailable"]));
    const store = await folder.open();
    for (const id of created) {
      expect(await store.applications.find(id)).toBeDefined();
    }
    expect(await store.applications.create(anApplication())).toBeDefined();
  });
});

import { spawnSync } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, jest } from "@jest/globals";
import { newId } from "../../../src/lib/uuid.js";
import { StoreUnavailable } from "../../../src/store/port/errors.js";
import { anApplication, createWithSession, must, times } from "../../contract/store/fixtures.js";
import { useFollowers } from "../../support/api/followers.js";
import { itIf } from "../../support/jest/suite.js";
import { useLmdbFolder, useLmdbProcesses } from "../../support/lmdb/folder.js";
import { useChildren } from "../../support/service/child-process.js";
import { audit } from "../../support/store/audit.js";
import { hangTimeout } from "../../support/until.js";

jest.setTimeout(2 * hangTimeout);

const folder = useLmdbFolder();
const start = useChildren();
const follow = useFollowers();
const { child, run } = useLmdbProcesses(folder);

describe("a write that LMDB acknowledged", () => {
  const canTrace = spawnSync("strace", ["-f", "-o", "/dev/null", "true"]).status === 0;
  const title = "was synced to the disk first, together with concurrent writes";
  itIf(canTrace, title, "strace is missing or may not trace", async () => {
    const [node, args] = child("markWrites");
    const file = join(folder.path(), "trace");
    const calls = "trace=openat,fdatasync,write,writev,pwrite64,pwritev";
    const strace = ["-f", "-y", "-s", "80", "-o", file, "-e", calls, node, ...args];
    expect(spawnSync("strace", strace, { timeout: hangTimeout }).status).toBe(0);
    const events = summarizeTrace(await readFile(file, "utf8"));
    for (const number of times(5, (index) => index)) {
      expect(events).toMatch(new RegExp(`<${number}>(write )+sync commit </${number}>`));
    }
    expect(events).toMatch(/<many>((write )+sync commit ){1,3}<\/many>/);
  });

  /** Summarizes the writes, syncs and commits of a trace, between the calls that the process reports. */
  function summarizeTrace(trace: string): string {
    const durable = trace.match(/data\.mdb", O_\w+\|O_DSYNC.* = (\d+)/)?.[1];
    const commit = new RegExp(`pwrite64\\(${durable}<.* = \\d+$`);
    const unfinished = new Map<string, string>();
    const events = trace.split("\n").map((line) => {
      const thread = line.split(" ", 1)[0] ?? "";
      if (line.endsWith("<unfinished ...>")) {
        unfinished.set(thread, line);
        return "";
      }
      const call = line.includes(" resumed>") ? `${unfinished.get(thread)} ${line}` : line;
      const report = /write\(1<.*(called|acknowledged)\\":\\?"?(\w+)/.exec(call);
      if (report) {
        return report[1] === "called" ? `<${report[2]}>` : `</${report[2]}>`;
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
  it("see each other's writes at once, even within one tick of the event loop", async () => {
    const store = await folder.open();
    const id = newId(Date.now());
    expect(await store.applications.find(id)).toBeUndefined();
    run("create", id);
    expect(await store.applications.find(id)).toBeDefined();
    run("replaceKeys", id);
    const found = must(await store.applications.find(id));
    expect(Buffer.from(must(found.keys[0]).hash)).toEqual(Buffer.alloc(32, "replaced"));
    await store.applications.delete(found.tenantId, id, audit.deleted);
    expect(run("replaceKeys", id).status).toBe(1);
  });

  it("authorize a session only once", async () => {
    const store = await folder.open();
    const { session } = await createWithSession(store);
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

  it("open exactly as many sessions as a quota allows", async () => {
    const store = await folder.open();
    const { id } = await store.applications.create(anApplication(), audit.created);
    const others = times(2, () => start(child("openSessions", JSON.stringify({ id, quota: 30 }))));
    for (const other of others) {
      await other.line(0);
    }
    for (const other of others) {
      other.write("now\n");
    }
    const outcomes = await Promise.all(others.map(async (other) => (await other.line(1)).outcomes));
    const expected = [...times(20, () => "SessionQuotaReached"), ...times(30, () => "opened")];
    expect(outcomes.flat().sort()).toEqual(expected);
  });

  it("report changes in the order in which they took effect", async () => {
    const store = await folder.open();
    const { id, tenantId } = await store.applications.create(
      anApplication({ name: "0" }),
      audit.created,
    );
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
    await store.applications.delete(tenantId, id, audit.deleted);
    const changes = await follower.until(({ kind }) => kind === "deleted");
    const expected = times(100, (index) => (index % 2 ? "regenerated" : "updated"));
    expect(changes.map(({ kind }) => kind)).toEqual([...expected, "deleted"]);
  });

  it("can read while one blocks all writes, which time out", async () => {
    const unlimited = await folder.open();
    const { id, tenantId } = await unlimited.applications.create(anApplication(), audit.created);
    const store = await folder.open({ writeTimeout: 2_000 });
    const other = start(child("hold"));
    await other.line(0);
    const late = await store.applications
      .delete(tenantId, id, audit.deleted)
      .catch((error) => error);
    expect(late).toBeInstanceOf(StoreUnavailable);
    expect(late.cause).toBeDefined();
    expect(await store.applications.find(id)).toBeDefined();
    await other.kill();
    expect(await unlimited.applications.create(anApplication(), audit.created)).toBeDefined();
    // The write that timed out is not applied later.
    expect(await store.applications.find(id)).toBeDefined();
  });
});

describe("LMDB on a full disk", () => {
  it("refuses writes, keeps acknowledged ones, and recovers when there is space", async () => {
    const [node, args] = child("fill");
    const limited = ["-c", 'ulimit -f 8000; exec "$@"', "sh", node, ...args];
    const filled = spawnSync("sh", limited, { encoding: "utf8", timeout: hangTimeout });
    expect(filled.status).toBe(0);
    const { created, found, failures } = JSON.parse(filled.stdout);
    expect(found).toBe(created.length);
    expect(new Set(failures)).toEqual(new Set(["StoreUnavailable"]));
    const store = await folder.open();
    for (const id of created) {
      expect(await store.applications.find(id)).toBeDefined();
    }
    expect(await store.applications.create(anApplication(), audit.created)).toBeDefined();
  });
});

import { describe, expect, it, jest } from "@jest/globals";
import { newId } from "../../../src/lib/uuid.js";
import { anApplication, times } from "../../contract/store/fixtures.js";
import { useFollowers } from "../../support/api/followers.js";
import { openChangeLog } from "../../support/lmdb/change-log.js";
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
  it("is in the audit log, and nothing else is, after the process was killed", async () => {
    const writer = start(child("churn"));
    await writer.line(200);
    await writer.kill();
    const reported = (field: string): string[] =>
      writer.lines().flatMap((line) => line[field] ?? []);
    const opened = openChangeLog(folder.path());
    const log = opened.entries();
    await opened.close();
    expect(log.map(({ number }) => number)).toEqual(times(log.length, (index) => index + 1));
    const store = await folder.open();

    const deleted = log.filter(({ kind }) => kind === "deleted");
    const deletedIds = new Set(deleted.map(({ applicationId }) => applicationId));
    for (const { applicationId = "" } of deleted) {
      expect(await store.applications.find(applicationId)).toBeUndefined();
    }
    for (const id of reported("created")) {
      expect((await store.applications.find(id)) === undefined).toBe(deletedIds.has(id));
    }

    const authorized = log.filter(({ kind }) => kind === "authorized");
    expect(authorized.map(({ sessionId }) => sessionId)).toEqual(
      expect.arrayContaining(reported("authorized")),
    );
    for (const { applicationId = "", sessionId = "" } of authorized) {
      const found = await store.sessions.find(sessionId);
      expect(found?.session.authorizedAt !== undefined).toBe(!deletedIds.has(applicationId));
    }
  });
});

describe("processes that share the data in LMDB", () => {
  it("report missed changes if another process prunes the log", async () => {
    const store = await folder.open();
    const { id } = await store.applications.create(anApplication(), audit.created);
    const follower = follow(store, anApplication().tenantId);
    await follower.next();
    const waited = follower.next();
    expect(run("pruneChanges", id).status).toBe(0);
    expect(await waited).toMatchObject({ changes: [], missed: true, position: "5-0" });
  });

  it("can exit without closing the store", async () => {
    const id = newId(Date.now());
    expect(run("leave", id).status).toBe(0);
    expect(run("follow", id).status).toBe(0);
    const store = await folder.open();
    expect(await store.applications.find(id)).toBeDefined();
  });
});

describe("a new folder", () => {
  it("gets one id from the first of the processes that open it", async () => {
    const others = times(4, () => start(child("identify")));
    const reported = await Promise.all(others.map((other) => other.line(0)));
    const { id } = await folder.open();
    expect(reported).toEqual(times(4, () => ({ id })));
  });
});

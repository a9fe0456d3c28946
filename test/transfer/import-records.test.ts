import { describe, expect, it } from "@jest/globals";
import { newId } from "../../src/lib/uuid.js";
import type { EventRecord } from "../../src/store/port/events.js";
import type { ApplicationFields } from "../../src/store/port/records.js";
import type { Store } from "../../src/store/port/store.js";
import { pepperChecks } from "../../src/transfer/checks.js";
import {
  applicationLine,
  endLine,
  eventLine,
  headerLine,
  sessionLine,
} from "../../src/transfer/export.js";
import { splitLines } from "../../src/transfer/format.js";
import { importRecords } from "../../src/transfer/import.js";
import { createImportReport } from "../../src/transfer/import-report.js";
import { anEvent } from "../contract/store/event-fixtures.js";
import { hour, idsOf, must, rule, times } from "../contract/store/fixtures.js";
import {
  anImportedApplication,
  anImportedSession,
  exportAll,
} from "../contract/store/transfer-fixtures.js";
import { useLmdbFolder } from "../support/lmdb/folder.js";

const folder = useLmdbFolder();
const pepper = "the pepper of these tests";

/** An application that the API would accept. */
function anApplication(fields: Partial<ApplicationFields> = {}): ApplicationFields {
  return anImportedApplication({ permissions: ["token:read"], ...fields });
}

function anOldEvent(): EventRecord {
  const at = Date.UTC(2026, 0);
  return { ...anEvent(), id: newId(at), at };
}

interface Options {
  readonly replace?: boolean;
  readonly dryRun?: boolean;
  readonly peppers?: readonly string[];
}

/** Imports a file with these lines, and returns the report. */
async function importInto(store: Store, lines: readonly string[], options: Options = {}) {
  const { replace = false, dryRun = false, peppers = [pepper] } = options;
  const report = createImportReport({ replace });
  let progress = 0;
  async function* read() {
    yield Buffer.from(lines.join(""));
  }
  await importRecords({
    lines: splitLines(read()),
    store,
    peppers,
    grantsLimit: 65_536,
    replace,
    dryRun,
    report,
    onProgress: (records) => {
      progress += records;
    },
  });
  return {
    isSuccess: report.isSuccess(),
    messages: report.messages(),
    summary: report.summary(dryRun),
    progress,
  };
}

const header = headerLine({ pepperChecks: pepperChecks([pepper]) });

/** A complete file with these records. */
function file(...records: string[]): string[] {
  const counts = { applications: records.length, sessions: 0, events: 0 };
  return [header, ...records, endLine(counts)];
}

describe("an import", () => {
  it("adds and counts all records of a file", async () => {
    const store = await folder.open();
    const applications = times(450, () => anApplication());
    const session = anImportedSession(must(applications[0]));
    const event = anOldEvent();
    const lines = [
      ...applications.map(applicationLine),
      sessionLine(session),
      ...times(3, anOldEvent).map(eventLine),
      eventLine(event),
    ];
    const first = await importInto(store, file(...lines));
    expect(first).toEqual({
      isSuccess: true,
      messages: [],
      summary: "applications  450 added\nsessions      1 added\nevents        4 added\n",
      progress: 455,
    });
    const again = await importInto(store, file(...lines));
    expect(again.summary).toBe(
      "applications  0 added, 450 unchanged\nsessions      0 added, 1 unchanged\nevents        0 added, 4 unchanged\n",
    );
    const held = await exportAll(store, 100);
    expect(idsOf(held.applications)).toEqual(applications.map(({ id }) => id).sort());
    expect(idsOf(held.sessions)).toEqual([session.id]);
    expect(held.events).toContainEqual(event);
  });

  it("refuses records whose grants are larger than the limit", async () => {
    const store = await folder.open();
    const rule = { priority: 1, conditions: [], transform: "mask", permissions: ["token:read"] };
    const value = `/${"a".repeat(60)}/`;
    const rules = times(1_000, () => ({ ...rule, container: value }));
    const condition = { attribute: "container", operator: "equals", value };
    const application = anApplication();
    const session = anImportedSession(application, {
      rules: times(1_000, () => ({ ...rule, conditions: [condition] })),
      authorizedAt: 1,
      authorizedBy: application.id,
    });
    const lines = [applicationLine(anApplication({ rules })), sessionLine(session)];
    const outcome = await importInto(store, file(...lines));
    expect(outcome.messages).toEqual(
      ["line 2: application", "line 3: session"].map((record) =>
        expect.stringMatching(
          new RegExp(`^${record}\\.rules: must be at most 65536 bytes .* but they are \\d+ bytes`),
        ),
      ),
    );
    expect(await exportAll(store)).toEqual({ applications: [], sessions: [], events: [] });
  });

  it("reports each invalid line with its number and error, and adds all others", async () => {
    const store = await folder.open();
    const valid = times(3, () => anApplication());
    const lines = valid.map(applicationLine);
    const invalid = [
      "not JSON\n",
      applicationLine(anApplication({ name: "" })),
      applicationLine(anApplication({ keys: [{ id: "1", hash: Buffer.alloc(3), createdAt: 0 }] })),
    ];
    const outcome = await importInto(store, file(...[...lines, ...invalid].sort()));
    expect(outcome.isSuccess).toBe(false);
    expect(outcome.messages).toHaveLength(3);
    expect(outcome.summary).toContain("applications  3 added\n");
    expect(outcome.summary).toContain("invalid lines 3\n");
    expect(idsOf((await exportAll(store)).applications)).toEqual(valid.map(({ id }) => id).sort());

    const numbered = await importInto(store, file(...lines, ...invalid));
    expect(numbered.messages).toEqual([
      expect.stringMatching(/^line 5: is not valid JSON/),
      expect.stringMatching(/^line 6: application\.name: /),
      "line 7: application.keys[0].id: must be a valid UUID; " +
        "application.keys[0].hash: must be 32 bytes in base64",
    ]);
  });

  it("imports applications that the API would now refuse, with a warning", async () => {
    const store = await folder.open();
    const ofContainer = { ...rule, conditions: [], container: "pci//../high" };
    const unusual = [
      anApplication({ rules: [ofContainer] }),
      anApplication({ type: "public", permissions: ["session:read"] }),
    ];
    const outcome = await importInto(store, file(...unusual.map(applicationLine)));
    expect(outcome.isSuccess).toBe(true);
    expect(outcome.summary).toContain("applications  2 added\n");
    const ids = unusual.map(({ id }) => id);
    expect(outcome.messages).toEqual([
      expect.stringMatching(`^line 2: the application ${ids[0]} .*rules\\[0\\]\\.container`),
      expect.stringMatching(
        `^line 3: the application ${ids[1]} .*permissions\\[0\\]: session:read`,
      ),
    ]);
    const { applications } = await exportAll(store);
    expect(idsOf(applications)).toEqual([...ids].sort());

    const broken = [
      anApplication({ rules: [{ ...ofContainer, transform: "show" }] }),
      anApplication({ rules: [{ ...ofContainer, container: undefined }] }),
      anApplication({ rules: [{ ...ofContainer, container: "/two/\nlines/" }] }),
    ];
    const refused = await importInto(store, file(...broken.map(applicationLine)));
    expect(refused.isSuccess).toBe(false);
    expect(refused.summary).toContain("invalid lines 3\n");
  });

  it("lists the first twenty invalid lines, and counts the rest", async () => {
    const store = await folder.open();
    const { messages } = await importInto(store, file(...times(50, () => "{}\n")));
    expect(messages).toHaveLength(21);
    expect(messages.at(-1)).toBe("30 more invalid lines");
  });

  it("reports records that differ, and replaces them only with replace", async () => {
    const store = await folder.open();
    const records = times(25, () => anApplication());
    await importInto(store, file(...records.map(applicationLine)));
    const others = records.map((record) => applicationLine({ ...record, name: "till" }));
    const refused = await importInto(store, file(...others));
    expect(refused.isSuccess).toBe(false);
    expect(refused.messages).toHaveLength(21);
    expect(refused.messages[0]).toBe(
      `line 2: the application ${records[0]?.id} already exists and differs; pass --replace to overwrite it`,
    );
    expect(refused.messages.at(-1)).toBe("5 more conflicts with stored records");
    expect((await exportAll(store)).applications.every(({ name }) => name === "shop")).toBe(true);

    const replaced = await importInto(store, file(...others), { replace: true });
    expect(replaced).toMatchObject({ isSuccess: true, messages: [] });
    expect(replaced.summary).toContain("0 added, 25 replaced");
    expect((await exportAll(store)).applications.every(({ name }) => name === "till")).toBe(true);
  });

  it("counts records that are not restored, without failing", async () => {
    const store = await folder.open();
    const records = times(3, () => anApplication());
    const [first, second] = records.map((record) => ({ ...record, disabled: true }));
    const lines = file(...records.map(applicationLine));
    await importInto(store, file(...[first, second].map((one) => applicationLine(must(one)))));
    for (const dryRun of [true, false]) {
      const imported = await importInto(store, lines, { replace: true, dryRun });
      expect(imported).toMatchObject({ isSuccess: true, messages: [] });
      expect(imported.summary).toContain("1 added, 2 revoked or expired here and not restored");
    }
    const { applications } = await exportAll(store);
    expect(applications.filter(({ disabled }) => disabled)).toHaveLength(2);
  });

  it("skips expired records, and sessions whose application is missing", async () => {
    const now = Date.UTC(2026, 6);
    const store = await folder.open({ clock: () => now });
    const [owner, expired, missing] = [
      anApplication(),
      anApplication({ expiresAt: now - hour }),
      anApplication(),
    ];
    const sessions = [
      anImportedSession(owner, { expiresAt: now - 1 }),
      anImportedSession(expired),
      anImportedSession(missing),
    ];
    const lines = [...[owner, expired].map(applicationLine), ...sessions.map(sessionLine)];
    const { isSuccess, summary } = await importInto(store, file(...lines));
    expect(isSuccess).toBe(true);
    expect(summary).toContain("applications  1 added, 1 expired\n");
    expect(summary).toContain("sessions      0 added, 2 without their application, 1 expired\n");
  });

  it("reports the same in a dry run as in the import that follows, and writes nothing", async () => {
    const store = await folder.open();
    const [existing, added] = [anApplication(), anApplication()];
    await importInto(store, file(applicationLine(existing)));
    const key = { id: newId(0), hash: Buffer.alloc(32, 7), createdAt: 0, imported: true };
    const [owner, other] = times(2, () => anApplication({ keys: [key] }));
    const lines = file(
      applicationLine({ ...existing, name: "till" }),
      applicationLine(added),
      ...[must(owner), must(other)].map(applicationLine),
      sessionLine(anImportedSession(must(other))),
      ...[existing, added, anApplication()].map((owner) => sessionLine(anImportedSession(owner))),
      eventLine(anOldEvent()),
      "{}\n",
    );
    const dry = await importInto(store, lines, { dryRun: true });
    expect(idsOf((await exportAll(store)).applications)).toEqual([existing.id]);
    expect(dry.summary).toContain("Dry run: nothing was written.\n");
    const real = await importInto(store, lines);
    expect(dry.messages).toEqual(real.messages);
    expect(dry.summary).toContain(real.summary);
    expect(dry.summary).toContain("1 with a key of another application");
  });

  it("reports an external id that another application has, in a dry run too", async () => {
    const store = await folder.open();
    const fields = { externalId: "svc-4711", tenantId: newId(0) };
    const records = times(2, () => anApplication(fields));
    const lines = file(...records.map(applicationLine), applicationLine(anApplication()));
    const dry = await importInto(store, lines, { dryRun: true });
    const real = await importInto(store, lines);
    for (const { messages, summary, isSuccess } of [dry, real]) {
      expect(isSuccess).toBe(false);
      expect(messages).toEqual([
        `line 3: the application ${records[1]?.id} has an external id that another application ` +
          "of its tenant already has; change one of them " +
          "(applications cannot swap external ids in one import)",
      ]);
      expect(summary).toContain("2 added, 1 with an external id of another application");
    }
  });

  it("predicts in a dry run that a replacement gives up its external id", async () => {
    const store = await folder.open();
    const tenantId = newId(0);
    const [one, two, three] = ["svc-1", "svc-2", "svc-3"].map((externalId) =>
      anApplication({ tenantId, externalId }),
    ) as [ApplicationFields, ApplicationFields, ApplicationFields];
    await importInto(store, file(...[one, two, three].map(applicationLine)));
    const lines = file(
      // Two stored applications swap, which is refused.
      applicationLine({ ...two, externalId: "svc-3" }),
      applicationLine({ ...three, externalId: "svc-2" }),
      // More than a batch.
      ...times(201, (index) =>
        applicationLine(index === 0 ? { ...one, externalId: "svc-4" } : anApplication()),
      ),
      applicationLine(anApplication({ tenantId, externalId: "svc-1" })),
      applicationLine(anApplication({ tenantId, externalId: "svc-1" })),
    );
    const dry = await importInto(store, lines, { replace: true, dryRun: true });
    const real = await importInto(store, lines, { replace: true });
    expect(dry.messages).toEqual(real.messages);
    expect(dry.summary).toContain(real.summary);
    expect(real.summary).toContain("201 added, 1 replaced, 3 with an external id of another");
  });

  it("reports a file truncated anywhere, and imports its records", async () => {
    const store = await folder.open();
    const records = times(3, () => anApplication());
    const complete = file(...records.map(applicationLine));
    const cutAtLine = await importInto(store, complete.slice(0, 3));
    expect(cutAtLine).toMatchObject({
      isSuccess: false,
      messages: [expect.stringContaining("it has no end line")],
    });
    expect(cutAtLine.summary).toContain("2 added");
    const truncated = [...complete.slice(0, 3), must(complete[3]).slice(0, 100)];
    const { messages } = await importInto(store, truncated);
    expect(messages).toEqual([
      "line 4: is truncated",
      expect.stringContaining("it has no end line"),
    ]);
    const withoutNewline = [...complete.slice(0, -1), must(complete.at(-1)).trimEnd()];
    expect((await importInto(store, withoutNewline)).isSuccess).toBe(true);
  });

  it("ignores blank lines", async () => {
    const store = await folder.open();
    const lines = [...file(applicationLine(anApplication())), "\n", "\r\n", "  "];
    expect(await importInto(store, lines)).toMatchObject({ isSuccess: true, messages: [] });
  });

  it("escapes control characters", async () => {
    const store = await folder.open();
    const evil = "\u001b]0;owned\u0007\r\u009b2J\u202e";
    const lines = file(`{"${JSON.stringify(evil).slice(1, -1)}":1}\n`, `${evil}\n`);
    const { messages } = await importInto(store, lines);
    expect(messages[0]).toContain("\\u{1b}]0;owned\\u{7}\\u{d}\\u{9b}2J\\u{202e}: is unknown");
    expect(messages.join("")).not.toMatch(/[\p{Cc}\p{Cf}]/u);
    const header = importInto(store, [must(lines[1])]);
    await expect(header).rejects.toThrow(/^[^\p{Cc}\p{Cf}]*$/u);
  });

  it("reports missing lines, added lines, and lines after the end", async () => {
    const store = await folder.open();
    const lines = times(3, () => applicationLine(anApplication()));
    const [first, ...rest] = file(...lines);
    const fewer = await importInto(store, [must(first), ...rest.slice(1)]);
    expect(fewer.messages).toEqual([
      expect.stringContaining(
        "The file has 2 records, but its end line counts 3: lines are missing or were added. Export again.",
      ),
    ]);
    const { messages } = await importInto(store, [...file(...lines), must(lines[0])]);
    expect(messages[0]).toBe("line 6: follows the end of the export");
  });

  it("refuses a file that is not an export", async () => {
    const store = await folder.open();
    const notOurs = [[], ["\n"], ["PK\u0003\u0004"], [applicationLine(anApplication())], ["{}\n"]];
    for (const lines of notOurs) {
      await expect(importInto(store, lines)).rejects.toThrow("The file is not an export");
    }
  });

  it("names the format of a file that it cannot read, whatever else the header has", async () => {
    const store = await folder.open();
    for (const header of ['{"latchkey_export":2}\n', '{"latchkey_export":2,"parts":[1]}\n']) {
      await expect(importInto(store, [header])).rejects.toThrow(
        "The file has format 2, but this version reads format 1. Use the version that wrote it.",
      );
    }
  });

  it("refuses a file whose keys were hashed with an unknown pepper", async () => {
    const store = await folder.open();
    const lines = file(applicationLine(anApplication()));
    const other = importInto(store, lines, { peppers: ["another pepper of others"] });
    await expect(other).rejects.toThrow(
      "Add them; otherwise keys hashed with them would not work.",
    );
    await expect(importInto(store, lines, { peppers: [""] })).rejects.toThrow("KEY_PEPPER");
    expect((await exportAll(store)).applications).toEqual([]);

    const peppers = ["a newer pepper of ours", pepper, ""];
    expect(await importInto(store, lines, { peppers })).toMatchObject({ messages: [] });
    const ofTwo = headerLine({ pepperChecks: pepperChecks([pepper, ""]) });
    await expect(importInto(store, [ofTwo, ...lines.slice(1)])).rejects.toThrow(
      "KEY_PEPPER lacks 1 of the 2 peppers used by the exporting service (number 2, newest first)",
    );
    for (const unchecked of ['{"latchkey_export":1}\n', headerLine({ pepperChecks: [] })]) {
      const outcome = await importInto(store, [unchecked, ...lines.slice(1)]);
      expect(outcome).toMatchObject({ isSuccess: true, messages: [] });
    }
  });

  it("identifies a pepper by its check without revealing it", () => {
    const [check, again, other, none] = pepperChecks([pepper, pepper, `${pepper}.`, ""]);
    expect(check).toBe(again);
    expect(new Set([check, other, none]).size).toBe(3);
    expect(check).not.toContain(pepper);
  });
});

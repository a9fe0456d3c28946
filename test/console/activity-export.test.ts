import { create, fromJsonString } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { createRouterTransport } from "@connectrpc/connect";
import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { EventSchema, EventService } from "../../gen/latchkey/v1/event_service_pb.js";
import { services } from "../../src/contract/methods.js";
import { kindInWords, methodInWords } from "../../web/console/activity/event-words.js";
import { readEvents, toCsvFile, toJsonLines } from "../../web/console/activity/export-events.js";

const event = create(EventSchema, {
  id: "0198c8a6-1b2c-7d3e-8f40-5a6b7c8d9e0f",
  kind: "application.updated",
  at: timestampFromMs(Date.UTC(2026, 10, 15, 6)),
  outcome: "success",
  target: { applicationId: "0198c8a2-7f3e-7c1d-9b5a-2f4e6d8c0b1a", name: 'The "old", shop' },
});

/** Reads quoted cells, separated by commas. */
function readRow(row: string): string[] {
  return [...row.matchAll(/"((?:[^"]|"")*)"(?:,|$)/g)].map(([, cell = ""]) =>
    cell.replaceAll('""', '"'),
  );
}

describe("an export of events", () => {
  it("stops after many empty pages, and says so", async () => {
    const transport = createRouterTransport(({ service }) =>
      service(EventService, { listEvents: () => ({ pagination: { next: event.id } }) }),
    );
    const controller = new AbortController();
    const { signal } = controller;
    let pages = 0;
    const onProgress = () => ++pages > 1_000 && controller.abort();
    const exported = await readEvents({
      transport,
      request: {},
      max: 10_000,
      signal,
      onProgress,
    });
    expect(exported).toEqual({ events: [], isComplete: false });
  });
});

describe("an export of events as CSV", () => {
  it("has a header and one quoted row per event", () => {
    const csv = toCsvFile([event]);
    // Excel needs the byte order mark.
    expect(csv.startsWith("\ufeff")).toBe(true);
    const [header = "", row = "", end, ...others] = csv.slice(1).split("\r\n");
    expect([end, others]).toEqual(["", []]);
    const values = readRow(row);
    const cells = new Map(readRow(header).map((name, index) => [name, values[index]]));
    expect(Object.fromEntries(cells)).toMatchObject({
      time: "2026-11-15T06:00:00.000Z",
      kind: "application.updated",
      target_name: 'The "old", shop',
      target_application_id: "0198c8a2-7f3e-7c1d-9b5a-2f4e6d8c0b1a",
      actor_name: "",
    });
  });

  it("has no cell that a spreadsheet would run as a formula", () => {
    const start = fc.constantFrom("=", "+", "-", "@", "\t=", " =", "＝", "＠", "\r+", "");
    fc.assert(
      fc.property(start, fc.string(), (prefix, text) => {
        const name = `${prefix}${text}`;
        const csv = toCsvFile([create(EventSchema, { id: event.id, target: { name } })]);
        const cells = readRow(csv.slice(csv.indexOf("\r\n") + 2));
        for (const cell of cells) {
          expect(cell.trimStart()).not.toMatch(/^[=+\-@＝＋－＠]/);
        }
        expect(cells.some((cell) => cell === name || cell === `'${name}`)).toBe(true);
      }),
    );
  });
});

describe("an export of events as JSON lines", () => {
  it("has the complete event in each line", () => {
    const lines = toJsonLines([event, event]).split("\n");
    expect(lines).toHaveLength(3);
    expect(JSON.parse(lines[0] ?? "")).toHaveProperty(
      "target.application_id",
      event.target?.applicationId,
    );
    expect(fromJsonString(EventSchema, lines[1] ?? "")).toEqual(event);
  });
});

describe("events in words", () => {
  it.each([
    ["latchkey.v1.ApplicationService/UpdateApplication", "Update application"],
    ["latchkey.v1.AccessService/WhoAmI", "Who am I"],
    ["latchkey.v1.AccessService/BatchCheckAccess", "Batch check access"],
  ])("names the method %s", (method, words) => {
    expect(methodInWords(method)).toBe(words);
  });

  it("names every method of the API with the letters of its name, and rotates keys", () => {
    for (const { name } of services.flatMap(({ methods }) => methods)) {
      expect(methodInWords(`service/${name}`).replaceAll(" ", "").toLowerCase()).toBe(
        name.toLowerCase().replace("regenerate", "rotate"),
      );
    }
  });

  it("names a kind", () => {
    expect(kindInWords("application.sessions_revoked")).toBe("Application sessions revoked");
  });
});

import { timestampMs } from "@bufbuild/protobuf/wkt";
import { createClient, createRouterTransport } from "@connectrpc/connect";
import { describe, expect, it } from "@jest/globals";
import { EventService, type ListEventsRequest } from "../../gen/latchkey/v1/event_service_pb.js";
import { readOwnDenials } from "../../web/console/activity/own-denials.js";

const application = "0198c8a2-7f3e-7c1d-9b5a-2f4e6d8c0b1a";
const other = "0198c8a0-11d3-7e02-a6b8-9c0d1e2f3a4b";
const now = Date.UTC(2026, 10, 15, 6);

/** Reads the denials from a service that has these pages. The cursor is the number of a page. */
async function readFrom(pageAt: (index: number) => readonly object[] | undefined) {
  const requests: ListEventsRequest[] = [];
  const transport = createRouterTransport(({ service }) =>
    service(EventService, {
      listEvents(request) {
        requests.push(request);
        const index = Number(request.start ?? 0);
        const next = pageAt(index + 1) ? { next: String(index + 1) } : {};
        return { pagination: next, data: [...(pageAt(index) ?? [])] };
      },
    }),
  );
  const { signal } = new AbortController();
  const client = createClient(EventService, transport);
  return { requests, ...(await readOwnDenials(client, application, { now, signal })) };
}

describe("the own denials of an application", () => {
  it("are counted by refused calls over all pages, without those of others that it was the target of", async () => {
    const pages = [
      [
        {
          id: "1",
          actor: { applicationId: application },
          target: { applicationId: other },
          count: 3,
        },
        {
          id: "2",
          actor: { applicationId: other },
          target: { applicationId: application },
          count: 9,
        },
      ],
      [],
      [{ id: "3", target: { applicationId: application, keyId: other } }],
      [{ id: "4", actor: { applicationId: application, sessionId: other }, count: 2 }],
    ];
    const { requests, events, count, isComplete } = await readFrom((index) => pages[index]);
    expect(events.map(({ id }) => id)).toEqual(["1", "3", "4"]);
    expect([count, isComplete]).toEqual([6, true]);
    expect(requests).toHaveLength(4);
    for (const { principal, kind, since } of requests) {
      expect([principal, kind]).toEqual([application, ["access.denied"]]);
      expect(since && timestampMs(since)).toBe(now - 3_600_000);
    }
  });

  it("are incomplete after many pages", async () => {
    const { requests, count, isComplete } = await readFrom(() => [
      { id: "1", actor: { applicationId: application } },
    ]);
    expect([count, isComplete]).toEqual([requests.length, false]);
    expect(requests.length).toBeLessThan(100);
  });
});

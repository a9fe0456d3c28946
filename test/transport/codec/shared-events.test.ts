import { create, fromBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import {
  ListEventsResponseSchema,
  WatchEventsResponseSchema,
} from "../../../gen/latchkey/v1/event_service_pb.js";
import { createBinaryEncoder } from "../../../src/transport/codec/binary.js";

const anEvent = fc.record({ id: fc.string(), kind: fc.string(), reason: fc.string() });

describe("messages with events", () => {
  it("are encoded like any other message", () => {
    const encode = createBinaryEncoder(WatchEventsResponseSchema);
    const messages = fc.record({
      events: fc.array(anEvent),
      reset: fc.boolean(),
      resumeToken: fc.string(),
    });
    fc.assert(
      fc.property(messages, (message) => {
        const expected = create(WatchEventsResponseSchema, message);
        for (let time = 0; time < 2; time++) {
          expect(fromBinary(WatchEventsResponseSchema, encode(message))).toEqual(expected);
        }
        const encodeList = createBinaryEncoder(ListEventsResponseSchema);
        const list = { data: message.events, pagination: { pageSize: 3 } };
        expect(fromBinary(ListEventsResponseSchema, encodeList(list))).toEqual(
          create(ListEventsResponseSchema, list),
        );
      }),
    );
  });

  it("encode an event once for all watchers", () => {
    const encode = createBinaryEncoder(WatchEventsResponseSchema);
    let reads = 0;
    const event = {
      id: "1",
      get kind() {
        reads++;
        return "application.updated";
      },
    };
    const first = encode({ events: [event], resumeToken: "a" });
    const readsOnce = reads;
    for (let watcher = 0; watcher < 100; watcher++) {
      encode({ events: [event], resumeToken: String(watcher) });
    }
    expect(reads).toBe(readsOnce);
    expect(fromBinary(WatchEventsResponseSchema, first)).toMatchObject({ events: [{ id: "1" }] });
  });
});

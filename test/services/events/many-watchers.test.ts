import { afterEach, describe, expect, it } from "@jest/globals";
import { currentTick } from "../../../src/lib/event-loop.js";
import type { EventRecord } from "../../../src/store/port/events.js";
import { anEvent } from "../../contract/store/event-fixtures.js";
import { createGrpcApi } from "../../support/api/grpc.js";
import { useReaders } from "../../support/api/streams.js";
import { startServer, type TestServer } from "../../support/service/server.js";
import { overrideStore } from "../../support/service/store.js";

const watchers = 6;
const id = "0198c8a2-7f3e-7c1d-9b5a-000000000001";

describe("an event that many watchers receive", () => {
  const read = useReaders();
  const closing: (() => unknown)[] = [];

  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) {
      await close();
    }
  });

  /** Opens watchers, then gives an event to all of them at once. */
  async function watch(eventOf: (record: EventRecord) => EventRecord) {
    const base: TestServer = await startServer();
    closing.push(() => base.close());
    let emit = () => {};
    const emitted = new Promise<void>((resolve) => {
      emit = resolve;
    });
    const store = overrideStore(base.store, {
      events: {
        async *follow({ tenantId }) {
          yield { events: [], missed: false, position: "0" };
          await emitted;
          const record = { ...anEvent({ tenantId }), id, at: 0 };
          yield { events: [eventOf(record)], missed: false, position: "1" };
        },
      },
    });
    const server = await startServer("lmdb", { store });
    closing.push(() => server.close());
    const { key } = await base.createTenant();
    const api = createGrpcApi(`127.0.0.1:${server.port}`);
    closing.push(() => api.close());
    const readers = Array.from({ length: watchers }, () =>
      read((signal) => api.watchEvents(key, {}, signal)),
    );
    await Promise.all(readers.map((reader) => reader.next()));
    emit();
    const received = await Promise.all(readers.map((reader) => reader.next()));
    expect(received.map(({ events }) => events.map((event) => event.id))).toEqual(
      readers.map(() => [id]),
    );
  }

  it("is converted once for all of them", async () => {
    let conversions = 0;
    let shared: EventRecord | undefined;
    await watch((record) => {
      shared ??= Object.defineProperty({ ...record }, "requestId", {
        enumerable: true,
        get() {
          conversions++;
          return "a";
        },
      }) as EventRecord;
      return shared;
    });
    expect(conversions).toBe(1);
  });

  it("does not keep other calls waiting for all of them", async () => {
    const ticks = new Set<number>();
    await watch((record) =>
      Object.defineProperty({ ...record }, "requestId", {
        enumerable: true,
        get() {
          ticks.add(currentTick());
          const end = performance.now() + 15;
          while (performance.now() < end) {
            // Takes the time of a large event.
          }
          return "a";
        },
      }),
    );
    // The first two may be converted before and after the input of one tick.
    expect(ticks.size).toBeGreaterThanOrEqual(watchers - 1);
  });
});

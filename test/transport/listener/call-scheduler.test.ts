import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { waitForNextTick } from "../../../src/lib/event-loop.js";
import {
  type CallScheduler,
  createCallSchedulers,
  createFairQueue,
} from "../../../src/transport/listener/call-scheduler.js";
import { times } from "../../contract/store/fixtures.js";
import {
  endHeaders,
  endStream,
  frame,
  frameType,
  request,
} from "../../support/http/http2-frames.js";
import { openRaw, openRawHttp2 } from "../../support/http/raw-connection.js";
import { startServer, type TestServer } from "../../support/service/server.js";
import { until } from "../../support/until.js";

describe("call scheduler", () => {
  /** Schedules calls of a connection and records the name of each call that runs. */
  function schedule(scheduler: CallScheduler, count: number, name: string, ran: string[]): void {
    for (let call = 0; call < count; call++) {
      if (scheduler.tryAcquire()) {
        ran.push(name);
      } else {
        scheduler.enqueue(() => ran.push(name));
      }
    }
  }

  let now = 0;
  const clock = () => now;

  /** Advances the clock by more than the budget of a tick. */
  function exceedBudget(): void {
    now += 15;
  }

  describe("calls that arrive together", () => {
    it("run in the same tick if there are few", () => {
      const ran: string[] = [];
      schedule(createCallSchedulers(clock)(), 16, "a", ran);
      expect(ran).toHaveLength(16);
    });

    it("are queued if there are many on one connection", async () => {
      const ran: string[] = [];
      schedule(createCallSchedulers(clock)(), 100, "a", ran);
      expect(ran).toHaveLength(16);
      await waitForNextTick();
      await waitForNextTick();
      expect(ran.length).toBeGreaterThan(16);
      expect(ran.length).toBeLessThan(100);
    });

    it("are queued if other connections have used up the budget of the tick", () => {
      const ran: string[] = [];
      const create = createCallSchedulers(clock);
      for (let connection = 0; connection < 8; connection++) {
        schedule(create(), 1, "early", ran);
      }
      exceedBudget();
      schedule(create(), 1, "late", ran);
      expect(ran).not.toContain("late");
    });

    it("all run eventually, in order for each connection", async () => {
      const ran: number[] = [];
      const scheduler = createCallSchedulers(clock)();
      for (let call = 0; call < 1_000; call++) {
        if (scheduler.tryAcquire()) {
          ran.push(call);
        } else {
          scheduler.enqueue(() => ran.push(call));
        }
      }
      while (ran.length < 1_000) {
        await waitForNextTick();
      }
      expect(ran).toEqual(Array.from({ length: 1_000 }, (_, at) => at));
    });
  });

  describe("a call that arrives when many are queued", () => {
    it("does not wait for all of them", async () => {
      const ran: string[] = [];
      const create = createCallSchedulers(clock);
      for (let connection = 0; connection < 500; connection++) {
        const scheduler = create();
        scheduler.enqueue(() => ran.push("many"));
        scheduler.enqueue(() => ran.push("many"));
      }
      create().enqueue(() => ran.push("one"));
      while (!ran.includes("one")) {
        await waitForNextTick();
      }
      expect(ran.length).toBeLessThan(100);
    });
  });

  describe("when a connection is opened in each tick", () => {
    it("runs one queued call per tick, so that pending connections are accepted soon", async () => {
      const ran: string[] = [];
      const create = createCallSchedulers(clock);
      const scheduler = create();
      for (let call = 0; call < 100; call++) {
        scheduler.enqueue(() => {
          exceedBudget();
          ran.push("a");
        });
      }
      await waitForNextTick();
      const counts: number[] = [];
      for (let tick = 0; tick < 10; tick++) {
        create();
        const before = ran.length;
        await waitForNextTick();
        counts.push(ran.length - before);
      }
      expect(new Set(counts)).toEqual(new Set([1]));
    });
  });

  describe("when calls take long", () => {
    it("runs few calls per tick", async () => {
      const ran: number[] = [];
      const scheduler = createCallSchedulers(clock)();
      let tick = 0;
      for (let call = 0; call < 100; call++) {
        scheduler.enqueue(() => {
          exceedBudget();
          ran.push(tick);
        });
      }
      for (; tick < 6; tick++) {
        await waitForNextTick();
      }
      const inLastTick = ran.filter((at) => at === 5).length;
      expect(inLastTick).toBeGreaterThan(0);
      expect(inLastTick).toBeLessThanOrEqual(4);
    });
  });

  describe("when thousands of calls are queued", () => {
    it("reports every connection as full", () => {
      const create = createCallSchedulers(clock);
      const scheduler = create();
      for (let call = 0; call < 24_000; call++) {
        expect(scheduler.isFull()).toBe(false);
        scheduler.enqueue(() => {});
      }
      expect(create().isFull()).toBe(true);
    });
  });

  describe("a call of large weight", () => {
    it("is queued if it exceeds the limit of a connection per tick", () => {
      const scheduler = createCallSchedulers(clock)();
      expect([scheduler.tryAcquire(10), scheduler.tryAcquire(10)]).toEqual([true, false]);
    });
  });
});

describe("a server with many calls at once on one connection", () => {
  let server: TestServer;

  beforeAll(async () => {
    server = await startServer();
  });

  afterAll(() => server.close());

  const http1 = (key: string, id: string) =>
    `GET /applications/key HTTP/1.1\r\nhost: a\r\nsvc-api-key: ${key}\r\nx-request-id: ${id}\r\n\r\n`;
  const http2 = (key: string, id: string, at: number) => {
    const fields = request("/applications/key", { "svc-api-key": key, "x-request-id": id });
    return frame(frameType.headers, endHeaders | endStream, 2 * at + 1, fields);
  };

  it.each([
    ["HTTP/1.1", openRaw, http1],
    ["HTTP/2", openRawHttp2, http2],
  ])("serves another connection before the last of them, over %s", async (_version, open, call) => {
    const { key } = await server.createTenant();
    const [crowded, other] = [open(server.port), open(server.port)];
    const served = () => server.logs.map(({ request_id: id }) => String(id));
    // Both have sent data before, so that their next requests are read in one tick.
    crowded.write(call(key, "first", 0));
    other.write(call(key, "second", 0));
    await until(async () => served().includes("first") && served().includes("second"));
    server.logs.length = 0;

    const many = times(100, (at) => Buffer.from(call(key, `many-${at}`, at + 1)));
    crowded.write(Buffer.concat(many));
    other.write(call(key, "other", 1));
    await until(async () => served().length === 101);
    expect(served().indexOf("other")).toBeLessThan(100);
    crowded.socket.destroy();
    other.socket.destroy();
    server.logs.length = 0;
  });
});

describe("fair queue", () => {
  it("returns every item exactly once", () => {
    fc.assert(
      fc.property(fc.array(fc.boolean()), (areNew) => {
        const queue = createFairQueue<number>();
        for (const [item, isNew] of areNew.entries()) {
          if (isNew) {
            queue.addNew(item);
          } else {
            queue.addReturning(item);
          }
        }
        expect(queue.length).toBe(areNew.length);
        const served = areNew.map(() => queue.next());
        expect(served.toSorted((a = 0, b = 0) => a - b)).toEqual([...areNew.keys()]);
        expect(queue.length).toBe(0);
        expect(queue.next()).toBeUndefined();
      }),
    );
  });

  it("keeps the order of returning items", () => {
    const queue = createFairQueue<number>();
    for (let item = 0; item < 10; item++) {
      queue.addReturning(item);
    }
    expect(Array.from({ length: 10 }, () => queue.next())).toEqual([...Array(10).keys()]);
  });

  it("retains only matching items", () => {
    const queue = createFairQueue<number>();
    for (let item = 0; item < 10; item++) {
      queue.addNew(item);
      queue.addReturning(item);
    }
    queue.retain((item) => item === 3);
    expect([queue.length, queue.next(), queue.next(), queue.next()]).toEqual([2, 3, 3, undefined]);
  });

  it("returns a new item among the next four, however many are queued", () => {
    const queue = createFairQueue<string>();
    for (let count = 0; count < 1_000; count++) {
      queue.addNew("early");
      queue.addReturning("returning");
    }
    for (let round = 0; round < 4; round++) {
      queue.addNew("late");
      expect([queue.next(), queue.next(), queue.next(), queue.next()]).toContain("late");
      queue.next();
    }
  });
});

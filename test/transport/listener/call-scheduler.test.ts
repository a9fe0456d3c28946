import type { Socket } from "node:net";
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  it,
  jest,
} from "@jest/globals";
import fc from "fast-check";
import { waitForNextTick } from "../../../src/lib/event-loop.js";
import {
  type CallScheduler,
  createCallSchedulers,
} from "../../../src/transport/listener/call-scheduler.js";
import type { Connection } from "../../../src/transport/listener/connection.js";
import { createFairQueue } from "../../../src/transport/listener/fair-queue.js";
import {
  createFlowControls,
  createSocketReader,
  type FlowControl,
} from "../../../src/transport/listener/flow-control.js";
import { closeStaleConnections } from "../../../src/transport/listener/stale-connections.js";
import { times } from "../../contract/store/fixtures.js";
import { endHeaders, endStream, frame, frameType, request } from "../../support/http2-frames.js";
import { openRaw, openRawHttp2 } from "../../support/raw-connection.js";
import { startServer, type TestServer } from "../../support/server.js";
import { type StoppedTime, stopTime } from "../../support/stop-time.js";
import { until } from "../../support/until.js";

describe("call scheduler", () => {
  /** Schedules calls of a connection, and records the name of each that runs. */
  function schedule(scheduler: CallScheduler, count: number, name: string, ran: string[]): void {
    for (let call = 0; call < count; call++) {
      if (scheduler.canRunNow()) {
        ran.push(name);
      } else {
        scheduler.enqueue(() => ran.push(name));
      }
    }
  }

  /** Advances the clock by more than the budget of a tick. */
  let now = 0;
  const clock = () => now;
  function workLong(): void {
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
      workLong();
      schedule(create(), 1, "late", ran);
      expect(ran).not.toContain("late");
    });

    it("all run eventually, in order for each connection", async () => {
      const ran: number[] = [];
      const scheduler = createCallSchedulers(clock)();
      for (let call = 0; call < 1_000; call++) {
        if (scheduler.canRunNow()) {
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
          workLong();
          ran.push("a");
        });
      }
      await waitForNextTick();
      const counts: number[] = [];
      for (let turn = 0; turn < 10; turn++) {
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
      let turn = 0;
      for (let call = 0; call < 100; call++) {
        scheduler.enqueue(() => {
          workLong();
          ran.push(turn);
        });
      }
      for (; turn < 6; turn++) {
        await waitForNextTick();
      }
      const inLast = ran.filter((at) => at === 5).length;
      expect(inLast).toBeGreaterThan(0);
      expect(inLast).toBeLessThanOrEqual(4);
    });
  });

  describe("when thousands of calls are queued", () => {
    it("every connection is full", () => {
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
      expect([scheduler.canRunNow(10), scheduler.canRunNow(10)]).toEqual([true, false]);
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

describe("flow control", () => {
  const doNothing = () => {};
  let time: StoppedTime;

  beforeEach(() => {
    time = stopTime();
  });

  afterEach(() => {
    jest.restoreAllMocks();
  });

  /** The connections of a server, and whether each is being read. */
  function createServer() {
    const createFlow = createFlowControls();
    return {
      open() {
        let isRead = true;
        const flow = createFlow({
          pauseReading() {
            isRead = false;
          },
          resumeReading() {
            isRead = true;
          },
        });
        let isStarted = false;
        flow.start(() => {
          isStarted = true;
        });
        const readOn = () => {
          isRead = true;
        };
        return { flow, isRead: () => isRead, isStarted: () => isStarted, readOn };
      },
    };
  }

  /** Queues calls. Returns a function that runs all of them. */
  function queueCalls(flow: FlowControl, count: number): () => void {
    const waiting = Array.from({ length: count }, () => flow.trackQueuedCall(doNothing));
    return () => {
      for (const serve of waiting) {
        serve();
      }
    };
  }

  async function ticks(count: number): Promise<void> {
    for (let turn = 0; turn < count; turn++) {
      await waitForNextTick();
    }
  }

  describe("while hundreds of unauthenticated calls are queued", () => {
    it("pauses all unauthenticated connections", async () => {
      const server = createServer();
      const [flood, other] = [server.open(), server.open()];
      queueCalls(flood.flow, 499);
      expect([flood.isRead(), other.isRead()]).toEqual([true, true]);
      queueCalls(flood.flow, 1);
      await ticks(10);
      expect([flood.isRead(), other.isRead()]).toEqual([false, false]);
      expect([flood.flow.isPaused, other.flow.isPaused]).toEqual([true, true]);
    });

    it("does not pause authenticated connections, and resumes one when it authenticates", () => {
      const server = createServer();
      const [flood, before, later] = [server.open(), server.open(), server.open()];
      before.flow.markAuthenticated();
      queueCalls(flood.flow, 500);
      expect([before.isRead(), later.isRead()]).toEqual([true, false]);
      later.flow.markAuthenticated();
      expect(later.isRead()).toBe(true);
    });

    it("does not start reading from new connections", async () => {
      const server = createServer();
      const serve = queueCalls(server.open().flow, 500);
      const newConnection = server.open();
      expect(newConnection.isStarted()).toBe(false);
      serve();
      await ticks(1);
      expect([newConnection.isStarted(), newConnection.isRead()]).toEqual([true, true]);
    });

    it("does not resume a closed connection", async () => {
      const server = createServer();
      const serve = queueCalls(server.open().flow, 500);
      const newConnection = server.open();
      newConnection.flow.close();
      serve();
      await ticks(10);
      expect([newConnection.isStarted(), newConnection.isRead()]).toEqual([false, false]);
    });
  });

  describe("while connections are paused", () => {
    it("resumes one from time to time, however many calls are queued", async () => {
      const server = createServer();
      const [flood, other] = [server.open(), server.open()];
      queueCalls(flood.flow, 500);
      await ticks(10);
      expect(other.isRead()).toBe(false);
      time.skip(100);
      await ticks(1);
      expect([flood.isRead(), other.isRead()].filter(Boolean)).toHaveLength(1);
      time.skip(100);
      await ticks(1);
      expect(other.isRead()).toBe(true);
    });

    it("pauses a connection that Node resumed by itself at its next call", () => {
      const server = createServer();
      const flood = server.open();
      queueCalls(flood.flow, 500);
      flood.readOn();
      expect(flood.isRead()).toBe(true);
      queueCalls(flood.flow, 1);
      expect(flood.isRead()).toBe(false);
    });
  });

  describe("when most calls have run", () => {
    it("resumes all connections, a few per tick", async () => {
      const server = createServer();
      const connections = Array.from({ length: 20 }, server.open);
      const serve = queueCalls((connections[0] as (typeof connections)[0]).flow, 500);
      serve();
      const read = () => connections.filter(({ isRead }) => isRead()).length;
      expect(read()).toBe(0);
      await ticks(1);
      expect(read()).toBe(4);
      await ticks(10);
      expect(read()).toBe(20);
    });

    it("resumes a connection with low concurrency before those with many calls", async () => {
      const server = createServer();
      const flood = Array.from({ length: 100 }, server.open);
      const lowConcurrency = server.open();
      lowConcurrency.flow.callEnded();
      const serve = flood.map(({ flow }) => queueCalls(flow, 5));
      expect(lowConcurrency.isRead()).toBe(false);
      for (const one of serve) {
        one();
      }
      await ticks(1);
      expect(lowConcurrency.isRead()).toBe(true);
      expect(flood.filter(({ isRead }) => isRead()).length).toBeLessThan(5);
    });
  });

  describe("while hundreds of authenticated calls are queued", () => {
    it("starts reading from new connections one after the other", async () => {
      const server = createServer();
      const busy = server.open();
      busy.flow.markAuthenticated();
      queueCalls(busy.flow, 500);
      expect(busy.isRead()).toBe(true);
      const newConnections = Array.from({ length: 20 }, server.open);
      const started = () => newConnections.filter(({ isStarted }) => isStarted()).length;
      expect(started()).toBe(0);
      for (let count = 1; count <= 20; count++) {
        time.skip(10);
        await ticks(3);
        expect(started()).toBe(count);
      }
    });

    it("counts queued calls by the current state of their connection", async () => {
      const server = createServer();
      const [flood, other] = [server.open(), server.open()];
      queueCalls(flood.flow, 500);
      expect(other.isRead()).toBe(false);
      flood.flow.markAuthenticated();
      const newConnections = Array.from({ length: 5 }, server.open);
      expect(newConnections.some(({ isStarted }) => isStarted())).toBe(false);
      for (let released = 0; released < newConnections.length + 1; released++) {
        time.skip(10);
        await ticks(1);
      }
      expect(other.isRead()).toBe(true);
    });
  });
});

describe("the fair queue", () => {
  it("returns every item exactly once", () => {
    fc.assert(
      fc.property(fc.array(fc.boolean()), (areFirst) => {
        const queue = createFairQueue<number>();
        for (const [one, isFirst] of areFirst.entries()) {
          if (isFirst) {
            queue.addNew(one);
          } else {
            queue.addReturning(one);
          }
        }
        expect(queue.length).toBe(areFirst.length);
        const served = areFirst.map(() => queue.next());
        expect(served.toSorted((a = 0, b = 0) => a - b)).toEqual([...areFirst.keys()]);
        expect(queue.length).toBe(0);
        expect(queue.next()).toBeUndefined();
      }),
    );
  });

  it("keeps the order of returning items", () => {
    const queue = createFairQueue<number>();
    for (let one = 0; one < 10; one++) {
      queue.addReturning(one);
    }
    expect(Array.from({ length: 10 }, () => queue.next())).toEqual([...Array(10).keys()]);
  });

  it("retains only matching items", () => {
    const queue = createFairQueue<number>();
    for (let one = 0; one < 10; one++) {
      queue.addNew(one);
      queue.addReturning(one);
    }
    queue.retain((one) => one === 3);
    expect([queue.length, queue.next(), queue.next(), queue.next()]).toEqual([2, 3, 3, undefined]);
  });

  it("returns the last of a thousand items among the next four", () => {
    const queue = createFairQueue<string>();
    for (let one = 0; one < 1_000; one++) {
      queue.addNew("early");
      queue.addReturning("again");
    }
    for (let turns = 0; turns < 4; turns++) {
      queue.addNew("late");
      expect([queue.next(), queue.next(), queue.next(), queue.next()]).toContain("late");
      queue.next();
    }
  });
});

describe("socket reader", () => {
  /** A socket that records whether it is being read, with a write queue of a given size. */
  function createSocket() {
    const handle = {
      writeQueueSize: 0,
      isRead: true,
      readStop() {
        handle.isRead = false;
      },
      readStart() {
        handle.isRead = true;
      },
    };
    const socket = { _handle: handle as typeof handle | null };
    return { socket, handle, reading: createSocketReader(socket as unknown as Socket) };
  }

  beforeEach(() => {
    jest.useFakeTimers();
  });

  afterEach(() => {
    jest.useRealTimers();
  });

  describe("a paused socket", () => {
    it("is not read until it is resumed", () => {
      const { handle, reading } = createSocket();
      reading.pauseReading();
      expect(handle.isRead).toBe(false);
      reading.resumeReading();
      expect(handle.isRead).toBe(true);
    });

    it("is read again only after its responses are drained", () => {
      const { handle, reading } = createSocket();
      reading.pauseReading();
      handle.writeQueueSize = 1;
      reading.resumeReading();
      jest.advanceTimersByTime(1_000);
      expect(handle.isRead).toBe(false);
      handle.writeQueueSize = 0;
      jest.advanceTimersByTime(1_000);
      expect(handle.isRead).toBe(true);
    });

    it("is not read if it was paused again or closed meanwhile", () => {
      const { socket, handle, reading } = createSocket();
      reading.pauseReading();
      handle.writeQueueSize = 1;
      reading.resumeReading();
      reading.pauseReading();
      handle.writeQueueSize = 0;
      jest.advanceTimersByTime(1_000);
      expect(handle.isRead).toBe(false);
      socket._handle = null;
      reading.resumeReading();
      expect(jest.getTimerCount()).toBe(0);
    });
  });
});

describe("stale connections", () => {
  const interval = 1_000;
  const limits = { headerTimeout: 2_000, bodyTimeout: 3_600_000, idleTimeout: 3_600_000 };
  /** Milliseconds after which a first call is too late. */
  const tooLate = limits.headerTimeout + interval + 1;

  let now: number;
  let connection: Connection;
  let isDropped: boolean;
  let isHeld: boolean;
  let releasedAt: number;
  let stop: () => void;

  beforeEach(() => {
    jest.useFakeTimers({ doNotFake: ["performance"] });
    now = 0;
    jest.spyOn(performance, "now").mockImplementation(() => now);
    isDropped = false;
    isHeld = false;
    releasedAt = Number.NEGATIVE_INFINITY;
    connection = {
      ...{ openedAt: 0, openRequests: 0, streams: new Map() },
      flow: {
        get isPaused() {
          return isHeld;
        },
        get resumedAt() {
          return releasedAt;
        },
      },
      drop: () => {
        isDropped = true;
      },
    } as Partial<Connection> as Connection;
    stop = closeStaleConnections([connection], limits);
  });

  afterEach(() => {
    stop();
    jest.restoreAllMocks();
    jest.useRealTimers();
  });

  /** Runs a check after this much time. More than one interval means that the process was blocked. */
  function checkAfter(milliseconds: number): void {
    now += milliseconds;
    jest.advanceTimersByTime(interval);
    // Lets pending I/O run first.
    jest.advanceTimersByTime(1);
  }

  describe("a connection without a call in time", () => {
    it("is closed by the next check", () => {
      while (now + interval < tooLate) {
        checkAfter(interval);
        expect(isDropped).toBe(false);
      }
      checkAfter(interval);
      expect(isDropped).toBe(true);
    });

    it("is not closed while it is paused: its call may be unread", () => {
      isHeld = true;
      while (now < 2 * tooLate) {
        checkAfter(interval);
      }
      expect(isDropped).toBe(false);
      isHeld = false;
      releasedAt = now;
      checkAfter(interval);
      expect(isDropped).toBe(false);
    });

    it("is not closed by a late check: its call may be unread", () => {
      checkAfter(tooLate);
      expect(isDropped).toBe(false);
      connection.openRequests++;
      checkAfter(interval);
      expect(isDropped).toBe(false);
    });

    it.each([interval, tooLate])("is closed by the next check, %i ms later", (gap) => {
      checkAfter(tooLate);
      checkAfter(gap);
      expect(isDropped).toBe(true);
    });
  });
});

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

describe("turns of calls", () => {
  /** Takes so many calls of a connection, and notes each that is served under a name. */
  function take(turns: CallScheduler, count: number, name: string, served: string[]): void {
    for (let call = 0; call < count; call++) {
      if (turns.canRunNow()) {
        served.push(name);
      } else {
        turns.enqueue(() => served.push(name));
      }
    }
  }

  /** Takes longer than a turn should, by a clock that nothing else moves. */
  let now = 0;
  const clock = () => now;
  function workLong(): void {
    now += 15;
  }

  describe("calls that come at once", () => {
    it("are served in the turn in which they come where they are few", () => {
      const served: string[] = [];
      take(createCallSchedulers(clock)(), 16, "a", served);
      expect(served).toHaveLength(16);
    });

    it("wait for later turns where they are many on one connection", async () => {
      const served: string[] = [];
      take(createCallSchedulers(clock)(), 100, "a", served);
      expect(served).toHaveLength(16);
      await waitForNextTick();
      await waitForNextTick();
      expect(served.length).toBeGreaterThan(16);
      expect(served.length).toBeLessThan(100);
    });

    it("wait where others have taken the time of a turn, on however many connections", () => {
      const served: string[] = [];
      const create = createCallSchedulers(clock);
      for (let connection = 0; connection < 8; connection++) {
        take(create(), 1, "early", served);
      }
      workLong();
      take(create(), 1, "late", served);
      expect(served).not.toContain("late");
    });

    it("are all served in the end, those of a connection in their order", async () => {
      const served: number[] = [];
      const turns = createCallSchedulers(clock)();
      for (let call = 0; call < 1_000; call++) {
        if (turns.canRunNow()) {
          served.push(call);
        } else {
          turns.enqueue(() => served.push(call));
        }
      }
      while (served.length < 1_000) {
        await waitForNextTick();
      }
      expect(served).toEqual(Array.from({ length: 1_000 }, (_, at) => at));
    });
  });

  describe("whoever comes when many wait", () => {
    it("does not wait for all of them", async () => {
      const served: string[] = [];
      const create = createCallSchedulers(clock);
      for (let connection = 0; connection < 500; connection++) {
        const turns = create();
        turns.enqueue(() => served.push("many"));
        turns.enqueue(() => served.push("many"));
      }
      create().enqueue(() => served.push("one"));
      while (!served.includes("one")) {
        await waitForNextTick();
      }
      expect(served.length).toBeLessThan(100);
    });
  });

  describe("where a connection is opened with each turn", () => {
    it("one that takes long is served in it, so that those at the door need not wait for many", async () => {
      const served: string[] = [];
      const create = createCallSchedulers(clock);
      const turns = create();
      for (let call = 0; call < 100; call++) {
        turns.enqueue(() => {
          workLong();
          served.push("a");
        });
      }
      await waitForNextTick();
      const counts: number[] = [];
      for (let turn = 0; turn < 10; turn++) {
        create();
        const before = served.length;
        await waitForNextTick();
        counts.push(served.length - before);
      }
      expect(new Set(counts)).toEqual(new Set([1]));
    });
  });

  describe("where calls take long", () => {
    it("few are served in a turn", async () => {
      const served: number[] = [];
      const turns = createCallSchedulers(clock)();
      let turn = 0;
      for (let call = 0; call < 100; call++) {
        turns.enqueue(() => {
          workLong();
          served.push(turn);
        });
      }
      for (; turn < 6; turn++) {
        await waitForNextTick();
      }
      const inLast = served.filter((at) => at === 5).length;
      expect(inLast).toBeGreaterThan(0);
      expect(inLast).toBeLessThanOrEqual(4);
    });
  });

  describe("where thousands wait", () => {
    it("no more should, on whichever connection", () => {
      const create = createCallSchedulers(clock);
      const turns = create();
      for (let call = 0; call < 24_000; call++) {
        expect(turns.isFull()).toBe(false);
        turns.enqueue(() => {});
      }
      expect(create().isFull()).toBe(true);
    });
  });

  describe("what counts for many", () => {
    it("waits where it is more than a connection may have in a turn", () => {
      const turns = createCallSchedulers(clock)();
      expect([turns.canRunNow(10), turns.canRunNow(10)]).toEqual([true, false]);
    });
  });
});

describe("a server to which many calls come at once on one connection", () => {
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
  ])("serves another before the last of them, over %s", async (_version, open, call) => {
    const { key } = await server.createTenant();
    const [crowded, other] = [open(server.port), open(server.port)];
    const served = () => server.logs.map(({ request_id: id }) => String(id));
    // Both have been heard before, so that what they send next is read in one turn.
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

describe("flow of connections", () => {
  const doNothing = () => {};
  let time: StoppedTime;

  beforeEach(() => {
    time = stopTime();
  });

  afterEach(() => {
    jest.restoreAllMocks();
  });

  /** The connections of a server, and whether each is read. */
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
        let hasBegun = false;
        flow.start(() => {
          hasBegun = true;
        });
        const readOn = () => {
          isRead = true;
        };
        return { flow, isRead: () => isRead, hasBegun: () => hasBegun, readOn };
      },
    };
  }

  /** Brings calls that wait, and answers with what serves all of them. */
  function bring(flow: FlowControl, count: number): () => void {
    const waiting = Array.from({ length: count }, () => flow.trackQueuedCall(doNothing));
    return () => {
      for (const serve of waiting) {
        serve();
      }
    };
  }

  async function turns(count: number): Promise<void> {
    for (let turn = 0; turn < count; turn++) {
      await waitForNextTick();
    }
  }

  describe("while hundreds of calls without a key wait", () => {
    it("no more are read, of whoever has shown no key", async () => {
      const server = createServer();
      const [flood, other] = [server.open(), server.open()];
      bring(flood.flow, 499);
      expect([flood.isRead(), other.isRead()]).toEqual([true, true]);
      bring(flood.flow, 1);
      await turns(10);
      expect([flood.isRead(), other.isRead()]).toEqual([false, false]);
      expect([flood.flow.isPaused, other.flow.isPaused]).toEqual([true, true]);
    });

    it("whoever has shown a key is read, and is from the moment when it does", () => {
      const server = createServer();
      const [flood, before, later] = [server.open(), server.open(), server.open()];
      before.flow.markAuthenticated();
      bring(flood.flow, 500);
      expect([before.isRead(), later.isRead()]).toEqual([true, false]);
      later.flow.markAuthenticated();
      expect(later.isRead()).toBe(true);
    });

    it("newcomers are not begun with", async () => {
      const server = createServer();
      const serve = bring(server.open().flow, 500);
      const newcomer = server.open();
      expect(newcomer.hasBegun()).toBe(false);
      serve();
      await turns(1);
      expect([newcomer.hasBegun(), newcomer.isRead()]).toEqual([true, true]);
    });

    it("one that has gone is not read again", async () => {
      const server = createServer();
      const serve = bring(server.open().flow, 500);
      const newcomer = server.open();
      newcomer.flow.close();
      serve();
      await turns(10);
      expect([newcomer.hasBegun(), newcomer.isRead()]).toEqual([false, false]);
    });
  });

  describe("while some are held back", () => {
    it("one is read again now and then, however many calls wait", async () => {
      const server = createServer();
      const [flood, other] = [server.open(), server.open()];
      bring(flood.flow, 500);
      await turns(10);
      expect(other.isRead()).toBe(false);
      time.skip(100);
      await turns(1);
      expect([flood.isRead(), other.isRead()].filter(Boolean)).toHaveLength(1);
      time.skip(100);
      await turns(1);
      expect(other.isRead()).toBe(true);
    });

    it("one that Node reads on by itself is stopped with the next call that it brings", () => {
      const server = createServer();
      const flood = server.open();
      bring(flood.flow, 500);
      flood.readOn();
      expect(flood.isRead()).toBe(true);
      bring(flood.flow, 1);
      expect(flood.isRead()).toBe(false);
    });
  });

  describe("when most of them are served", () => {
    it("all are read again, a few in a turn", async () => {
      const server = createServer();
      const connections = Array.from({ length: 20 }, server.open);
      const serve = bring((connections[0] as (typeof connections)[0]).flow, 500);
      serve();
      const read = () => connections.filter(({ isRead }) => isRead()).length;
      expect(read()).toBe(0);
      await turns(1);
      expect(read()).toBe(4);
      await turns(10);
      expect(read()).toBe(20);
    });

    it("one that asks now and then is read before those that bring many calls", async () => {
      const server = createServer();
      const flood = Array.from({ length: 100 }, server.open);
      const modest = server.open();
      modest.flow.callEnded();
      const serve = flood.map(({ flow }) => bring(flow, 5));
      expect(modest.isRead()).toBe(false);
      for (const one of serve) {
        one();
      }
      await turns(1);
      expect(modest.isRead()).toBe(true);
      expect(flood.filter(({ isRead }) => isRead()).length).toBeLessThan(5);
    });
  });

  describe("while hundreds of calls with a key wait", () => {
    it("newcomers are begun with one after the other", async () => {
      const server = createServer();
      const busy = server.open();
      busy.flow.markAuthenticated();
      bring(busy.flow, 500);
      expect(busy.isRead()).toBe(true);
      const newcomers = Array.from({ length: 20 }, server.open);
      const begun = () => newcomers.filter(({ hasBegun }) => hasBegun()).length;
      expect(begun()).toBe(0);
      for (let count = 1; count <= 20; count++) {
        time.skip(10);
        await turns(3);
        expect(begun()).toBe(count);
      }
    });

    it("calls count for the kind that their connection is of by now", async () => {
      const server = createServer();
      const [flood, other] = [server.open(), server.open()];
      bring(flood.flow, 500);
      expect(other.isRead()).toBe(false);
      flood.flow.markAuthenticated();
      const newcomers = Array.from({ length: 5 }, server.open);
      expect(newcomers.some(({ hasBegun }) => hasBegun())).toBe(false);
      for (let released = 0; released < newcomers.length + 1; released++) {
        time.skip(10);
        await turns(1);
      }
      expect(other.isRead()).toBe(true);
    });
  });
});

describe("the waiting line", () => {
  it("gives everybody a turn, and each one", () => {
    fc.assert(
      fc.property(fc.array(fc.boolean()), (areFirst) => {
        const line = createFairQueue<number>();
        for (const [one, isFirst] of areFirst.entries()) {
          if (isFirst) {
            line.addNew(one);
          } else {
            line.addReturning(one);
          }
        }
        expect(line.length).toBe(areFirst.length);
        const served = areFirst.map(() => line.next());
        expect(served.toSorted((a = 0, b = 0) => a - b)).toEqual([...areFirst.keys()]);
        expect(line.length).toBe(0);
        expect(line.next()).toBeUndefined();
      }),
    );
  });

  it("keeps the order of those who have had a turn", () => {
    const line = createFairQueue<number>();
    for (let one = 0; one < 10; one++) {
      line.addReturning(one);
    }
    expect(Array.from({ length: 10 }, () => line.next())).toEqual([...Array(10).keys()]);
  });

  it("keeps only those who are here", () => {
    const line = createFairQueue<number>();
    for (let one = 0; one < 10; one++) {
      line.addNew(one);
      line.addReturning(one);
    }
    line.retain((one) => one === 3);
    expect([line.length, line.next(), line.next(), line.next()]).toEqual([2, 3, 3, undefined]);
  });

  it("lets whoever comes last to a thousand have one of the next four turns", () => {
    const line = createFairQueue<string>();
    for (let one = 0; one < 1_000; one++) {
      line.addNew("early");
      line.addReturning("again");
    }
    for (let turns = 0; turns < 4; turns++) {
      line.addNew("late");
      expect([line.next(), line.next(), line.next(), line.next()]).toContain("late");
      line.next();
    }
  });
});

describe("reading of a socket", () => {
  /** A socket of which is told whether it is read, and how much is to be written. */
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

  describe("a connection that is not to be read for a while", () => {
    it("is not read until it is again", () => {
      const { handle, reading } = createSocket();
      reading.pauseReading();
      expect(handle.isRead).toBe(false);
      reading.resumeReading();
      expect(handle.isRead).toBe(true);
    });

    it("is read again only when its answers are taken", () => {
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

    it("is not read where it was stopped once more meanwhile, or is gone", () => {
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

describe("overdue connections", () => {
  const interval = 1_000;
  const limits = { headerTimeout: 2_000, bodyTimeout: 3_600_000, idleTimeout: 3_600_000 };
  /** After which it is too late for a first call. */
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

  /** Has connections looked at when so much time has passed, more than which the process stood still. */
  function lookAfter(milliseconds: number): void {
    now += milliseconds;
    jest.advanceTimersByTime(interval);
    // What was to be read first is read.
    jest.advanceTimersByTime(1);
  }

  describe("a connection that makes no call in time", () => {
    it("is ended by the next look", () => {
      while (now + interval < tooLate) {
        lookAfter(interval);
        expect(isDropped).toBe(false);
      }
      lookAfter(interval);
      expect(isDropped).toBe(true);
    });

    it("is not ended while it is held back: its call may be there, and not read", () => {
      isHeld = true;
      while (now < 2 * tooLate) {
        lookAfter(interval);
      }
      expect(isDropped).toBe(false);
      isHeld = false;
      releasedAt = now;
      lookAfter(interval);
      expect(isDropped).toBe(false);
    });

    it("is not ended by a look that comes late: its call may be there, and not read", () => {
      lookAfter(tooLate);
      expect(isDropped).toBe(false);
      connection.openRequests++;
      lookAfter(interval);
      expect(isDropped).toBe(false);
    });

    it.each([interval, tooLate])(
      "is ended by the look after that, which comes after %i ms",
      (gap) => {
        lookAfter(tooLate);
        lookAfter(gap);
        expect(isDropped).toBe(true);
      },
    );
  });
});

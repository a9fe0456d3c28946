import type { Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, it, jest } from "@jest/globals";
import { waitForNextTick } from "../../../src/lib/event-loop.js";
import {
  createFlowControls,
  createSocketReader,
  type FlowControl,
} from "../../../src/transport/listener/flow-control.js";
import type { FrozenTime } from "../../support/frozen-time.js";
import { freezeTime } from "../../support/frozen-time.js";

describe("flow control", () => {
  const doNothing = () => {};
  let time: FrozenTime;

  beforeEach(() => {
    time = freezeTime();
  });

  afterEach(() => {
    jest.restoreAllMocks();
  });

  /** Opens connections and records whether each is being read. */
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
        const resumeByNode = () => {
          isRead = true;
        };
        return { flow, isRead: () => isRead, isStarted: () => isStarted, resumeByNode };
      },
    };
  }

  /** Queues calls. Returns a function that runs all of them. */
  function queueCalls(flow: FlowControl, count: number): () => void {
    const queued = Array.from({ length: count }, () => flow.trackQueuedCall(doNothing));
    return () => {
      for (const serve of queued) {
        serve();
      }
    };
  }

  async function waitForTicks(count: number): Promise<void> {
    for (let tick = 0; tick < count; tick++) {
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
      await waitForTicks(10);
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
      await waitForTicks(1);
      expect([newConnection.isStarted(), newConnection.isRead()]).toEqual([true, true]);
    });

    it("does not resume a closed connection", async () => {
      const server = createServer();
      const serve = queueCalls(server.open().flow, 500);
      const newConnection = server.open();
      newConnection.flow.close();
      serve();
      await waitForTicks(10);
      expect([newConnection.isStarted(), newConnection.isRead()]).toEqual([false, false]);
    });
  });

  describe("while connections are paused", () => {
    it("resumes one from time to time, however many calls are queued", async () => {
      const server = createServer();
      const [flood, other] = [server.open(), server.open()];
      queueCalls(flood.flow, 500);
      await waitForTicks(10);
      expect(other.isRead()).toBe(false);
      time.advance(100);
      await waitForTicks(1);
      expect([flood.isRead(), other.isRead()].filter(Boolean)).toHaveLength(1);
      time.advance(100);
      await waitForTicks(1);
      expect(other.isRead()).toBe(true);
    });

    it("pauses a connection that Node resumed by itself at its next call", () => {
      const server = createServer();
      const flood = server.open();
      queueCalls(flood.flow, 500);
      flood.resumeByNode();
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
      await waitForTicks(1);
      expect(read()).toBe(4);
      await waitForTicks(10);
      expect(read()).toBe(20);
    });

    it("resumes a connection with low concurrency before those with many calls", async () => {
      const server = createServer();
      const flood = Array.from({ length: 100 }, server.open);
      const lowConcurrency = server.open();
      lowConcurrency.flow.callEnded();
      const serve = flood.map(({ flow }) => queueCalls(flow, 5));
      expect(lowConcurrency.isRead()).toBe(false);
      for (const serveAll of serve) {
        serveAll();
      }
      await waitForTicks(1);
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
        time.advance(10);
        await waitForTicks(3);
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
      for (let resumed = 0; resumed < newConnections.length + 1; resumed++) {
        time.advance(10);
        await waitForTicks(1);
      }
      expect(other.isRead()).toBe(true);
    });
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

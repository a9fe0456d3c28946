import { describe, expect, it } from "@jest/globals";
import { nextTurn } from "../src/next-turn.js";
import { createFlowsOfAll, type Flow } from "../src/server/flow.js";

const doNothing = () => {};

/** The connections of a server, and whether each is read. */
function createServer() {
  const createFlow = createFlowsOfAll();
  return {
    open() {
      let isRead = true;
      const flow = createFlow({
        stopReading() {
          isRead = false;
        },
        goOnReading() {
          isRead = true;
        },
      });
      let hasBegun = false;
      flow.begin(() => {
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
function bring(flow: Flow, count: number): () => void {
  const waiting = Array.from({ length: count }, () => flow.count(doNothing));
  return () => {
    for (const serve of waiting) {
      serve();
    }
  };
}

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) {
    await nextTurn();
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
    expect([flood.flow.isHeld, other.flow.isHeld]).toEqual([true, true]);
  });

  it("whoever has shown a key is read, and is from the moment when it does", () => {
    const server = createServer();
    const [flood, before, later] = [server.open(), server.open(), server.open()];
    before.flow.noteGoodKey();
    bring(flood.flow, 500);
    expect([before.isRead(), later.isRead()]).toEqual([true, false]);
    later.flow.noteGoodKey();
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
    newcomer.flow.end();
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
    await turns(1);
    expect(other.isRead()).toBe(false);
    while (!other.isRead()) {
      await turns(1);
    }
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
    modest.flow.noteCallOver();
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
    busy.flow.noteGoodKey();
    bring(busy.flow, 500);
    expect(busy.isRead()).toBe(true);
    const newcomers = Array.from({ length: 20 }, server.open);
    const begun = () => newcomers.filter(({ hasBegun }) => hasBegun()).length;
    expect(begun()).toBe(0);
    while (begun() < 20) {
      const before = begun();
      await turns(1);
      expect(begun() - before).toBeLessThanOrEqual(1);
    }
  });

  it("calls count for the kind that their connection is of by now", async () => {
    const server = createServer();
    const [flood, other] = [server.open(), server.open()];
    bring(flood.flow, 500);
    expect(other.isRead()).toBe(false);
    flood.flow.noteGoodKey();
    const newcomers = Array.from({ length: 5 }, server.open);
    expect(newcomers.some(({ hasBegun }) => hasBegun())).toBe(false);
    while (!other.isRead()) {
      await turns(1);
    }
  });
});

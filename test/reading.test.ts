import type { Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, it, jest } from "@jest/globals";
import { createReading } from "../src/server/reading.js";

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
  return { socket, handle, reading: createReading(socket as unknown as Socket) };
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
    reading.stopReading();
    expect(handle.isRead).toBe(false);
    reading.goOnReading();
    expect(handle.isRead).toBe(true);
  });

  it("is read again only when its answers are taken", () => {
    const { handle, reading } = createSocket();
    reading.stopReading();
    handle.writeQueueSize = 1;
    reading.goOnReading();
    jest.advanceTimersByTime(1_000);
    expect(handle.isRead).toBe(false);
    handle.writeQueueSize = 0;
    jest.advanceTimersByTime(1_000);
    expect(handle.isRead).toBe(true);
  });

  it("is not read where it was stopped once more meanwhile, or is gone", () => {
    const { socket, handle, reading } = createSocket();
    reading.stopReading();
    handle.writeQueueSize = 1;
    reading.goOnReading();
    reading.stopReading();
    handle.writeQueueSize = 0;
    jest.advanceTimersByTime(1_000);
    expect(handle.isRead).toBe(false);
    socket._handle = null;
    reading.goOnReading();
    expect(jest.getTimerCount()).toBe(0);
  });
});

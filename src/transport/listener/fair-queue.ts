import { coalescePerTick } from "../../lib/event-loop.js";

/** Starts a call of a connection, now or in a later tick of the event loop. */
type StartCall<Call> = (connection: object, call: Call) => void;

/** Calls that start per tick. */
const callsPerTick = 32;

/** Up to this many calls need no count per tick, so that light load costs nothing. */
const fairnessThreshold = 8;

/** Returns a function that starts calls. If thousands arrive at the same time, the connections take turns. */
export function createFairQueue<Call>(start: (call: Call) => void): StartCall<Call> {
  /** The waiting calls by connection. The first connection is next. */
  const waiting = new Map<object, Call[]>();
  let started = 0;

  const startTick = coalescePerTick(() => {
    started = 0;
    for (const [connection, calls] of waiting) {
      if (started === callsPerTick) {
        break;
      }
      started++;
      const call = calls.shift() as Call;
      waiting.delete(connection);
      if (calls.length > 0) {
        // The connection is last now.
        waiting.set(connection, calls);
      }
      start(call);
    }
    if (waiting.size > 0) {
      startTick();
    } else {
      started = 0;
    }
  });

  function enqueue(connection: object, call: Call): void {
    const calls = waiting.get(connection);
    if (calls) {
      calls.push(call);
    } else {
      waiting.set(connection, [call]);
    }
    startTick();
  }

  return (connection, call) => {
    started++;
    if (started === fairnessThreshold) {
      startTick();
    }
    if (started <= callsPerTick && !waiting.has(connection)) {
      start(call);
    } else {
      enqueue(connection, call);
    }
  };
}

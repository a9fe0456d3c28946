/**
 * Loaded into a process before its program, with --expose-gc. Between two
 * messages of its parent it counts what the program takes of the heap, and
 * what it makes that is dear. These are counts: a machine that is slow or busy
 * has the same.
 */
import { GCProfiler, getHeapStatistics } from "node:v8";

const made = { timers: 0, abortControllers: 0, headers: 0 };
countMade();

let profiler;
let usedAtStart = 0;
let madeAtStart = made;

process.on("message", (order) => {
  // The second finds what the first has only let go of.
  globalThis.gc();
  globalThis.gc();
  if (order === "start") {
    madeAtStart = { ...made };
    usedAtStart = getHeapStatistics().used_heap_size;
    profiler = new GCProfiler();
    profiler.start();
    process.send("started");
  } else {
    process.send({ ...heapCounts(profiler.stop()), ...madeSinceStart() });
  }
});

function heapCounts({ statistics }) {
  let allocated = 0;
  let promoted = 0;
  let used = usedAtStart;
  for (const { gcType, beforeGC, afterGC } of statistics) {
    allocated += usedOf(beforeGC) - used;
    used = usedOf(afterGC);
    if (gcType === "Scavenge") {
      promoted += usedOf(afterGC, isOld) - usedOf(beforeGC, isOld);
    }
  }
  return { allocated, promoted, retained: used - usedAtStart };
}

function usedOf({ heapSpaceStatistics }, isCounted = () => true) {
  return heapSpaceStatistics
    .filter(({ spaceName }) => isCounted(spaceName))
    .reduce((sum, { spaceUsedSize }) => sum + spaceUsedSize, 0);
}

function isOld(spaceName) {
  return !spaceName.startsWith("new_");
}

function madeSinceStart() {
  return Object.fromEntries(
    Object.entries(made).map(([name, count]) => [name, count - madeAtStart[name]]),
  );
}

function countMade() {
  const { setTimeout, AbortController, Headers } = globalThis;
  const countingSetTimeout = (...args) => {
    made.timers++;
    return setTimeout(...args);
  };
  globalThis.setTimeout = Object.defineProperties(
    countingSetTimeout,
    Object.getOwnPropertyDescriptors(setTimeout),
  );
  globalThis.AbortController = class extends AbortController {
    constructor() {
      super();
      made.abortControllers++;
    }
  };
  globalThis.Headers = class extends Headers {
    constructor(...args) {
      super(...args);
      made.headers++;
    }
  };
}

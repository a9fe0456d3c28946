/**
 * Preloaded into a process that runs with --expose-gc. Between the messages "start" and "stop"
 * of the parent it counts heap allocations and expensive objects. Unlike timings, these counts
 * do not depend on the speed or load of the machine.
 */
import { GCProfiler, getHeapStatistics } from "node:v8";

const created = { timers: 0, abortControllers: 0, headers: 0 };
patchGlobals();

let profiler;
let usedAtStart = 0;
let createdAtStart = created;

process.on("message", (command) => {
  // The second run collects objects that the first one only made unreachable.
  globalThis.gc();
  globalThis.gc();
  if (command === "start") {
    createdAtStart = { ...created };
    usedAtStart = getHeapStatistics().used_heap_size;
    profiler = new GCProfiler();
    profiler.start();
    process.send("started");
  } else {
    process.send({ ...sumHeapUsage(profiler.stop()), ...countCreatedSinceStart() });
  }
});

function sumHeapUsage({ statistics }) {
  let allocated = 0;
  let promoted = 0;
  let used = usedAtStart;
  for (const { gcType, beforeGC, afterGC } of statistics) {
    allocated += sumUsed(beforeGC) - used;
    used = sumUsed(afterGC);
    if (gcType === "Scavenge") {
      promoted += sumUsed(afterGC, isOldSpace) - sumUsed(beforeGC, isOldSpace);
    }
  }
  return { allocated, promoted, retained: used - usedAtStart };
}

function sumUsed({ heapSpaceStatistics }, isIncluded = () => true) {
  return heapSpaceStatistics
    .filter(({ spaceName }) => isIncluded(spaceName))
    .reduce((sum, { spaceUsedSize }) => sum + spaceUsedSize, 0);
}

function isOldSpace(spaceName) {
  return !spaceName.startsWith("new_");
}

function countCreatedSinceStart() {
  return Object.fromEntries(
    Object.entries(created).map(([name, count]) => [name, count - createdAtStart[name]]),
  );
}

/** Wraps the globals whose calls are counted. */
function patchGlobals() {
  const { setTimeout, AbortController, Headers } = globalThis;
  const countingSetTimeout = (...args) => {
    created.timers++;
    return setTimeout(...args);
  };
  globalThis.setTimeout = Object.defineProperties(
    countingSetTimeout,
    Object.getOwnPropertyDescriptors(setTimeout),
  );
  globalThis.AbortController = class extends AbortController {
    constructor() {
      super();
      created.abortControllers++;
    }
  };
  globalThis.Headers = class extends Headers {
    constructor(...args) {
      super(...args);
      created.headers++;
    }
  };
}

/**
 * Preloaded into a process. On SIGUSR2, collects garbage and writes a heap snapshot to
 * `$HEAP_SNAPSHOT.<pid>`.
 */
import { renameSync } from "node:fs";
import { setFlagsFromString, writeHeapSnapshot } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc");

process.on("SIGUSR2", () => {
  // The second run collects objects that the first one only finalized.
  collectGarbage();
  collectGarbage();
  const path = `${process.env.HEAP_SNAPSHOT}.${process.pid}`;
  // Renamed when complete, because writing takes a while.
  renameSync(writeHeapSnapshot(`${path}.part`), path);
});

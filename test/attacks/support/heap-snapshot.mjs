/**
 * Preloaded into a process. On SIGUSR2, collects garbage and writes a heap snapshot to
 * `$HEAP_SNAPSHOT.<pid>`.
 */
import { renameSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { setFlagsFromString, writeHeapSnapshot } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc");

process.on("SIGUSR2", async () => {
  // Later runs collect what the callbacks of finalized objects release.
  for (let run = 0; run < 3; run++) {
    collectGarbage();
    await setTimeout(500);
  }
  const path = `${process.env.HEAP_SNAPSHOT}.${process.pid}`;
  // Renamed when complete, because writing takes a while.
  renameSync(writeHeapSnapshot(`${path}.part`), path);
});

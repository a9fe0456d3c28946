/**
 * Loaded into a process before its program. On SIGUSR2 it collects all garbage
 * and writes what is left of its heap to the file that HEAP_SNAPSHOT names,
 * with the id of the process behind it.
 */
import { renameSync } from "node:fs";
import { setFlagsFromString, writeHeapSnapshot } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc");

process.on("SIGUSR2", () => {
  // The second finds what the first has only let go of.
  collect();
  collect();
  const path = `${process.env.HEAP_SNAPSHOT}.${process.pid}`;
  // It takes a while, and nobody shall read half of it.
  renameSync(writeHeapSnapshot(`${path}.part`), path);
});

#!/usr/bin/env node
import cluster from "node:cluster";
import { setFlagsFromString } from "node:v8";

// Under load V8 would allocate short-lived objects of calls in the old
// generation, which is rarely collected. That costs 20 MB.
setFlagsFromString("--no-allocation-site-pretenuring");

// By default V8 collects only when the heap has grown to four times the live
// size. In a flood of calls that costs 100 MB.
setFlagsFromString("--heap-growing-percent=50");

// The primary process has already parsed the command line.
await (cluster.isWorker ? import("./cluster/worker.js") : import("./cli/main.js"));

#!/usr/bin/env node
import cluster from "node:cluster";
import { setFlagsFromString } from "node:v8";

// Under load V8 comes to think that what calls leave behind is worth keeping,
// and makes it where it is hardly ever collected: that takes 20 MB more.
setFlagsFromString("--no-allocation-site-pretenuring");

// Before it collects what calls that had to wait have left, V8 lets the heap
// grow to four times of what is in use. In a flood that is a hundred MB more.
setFlagsFromString("--heap-growing-percent=50");

// A worker is run by a process that has read the command line already.
await (cluster.isWorker ? import("./cluster/worker.js") : import("./cli/main.js"));

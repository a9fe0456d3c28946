#!/usr/bin/env node
import cluster from "node:cluster";
import { setFlagsFromString } from "node:v8";

// Under load V8 comes to think that what calls leave behind is worth keeping,
// and makes it where it is hardly ever collected: that takes 20 MB more.
setFlagsFromString("--no-allocation-site-pretenuring");

// A worker is run by a process that has read the command line already.
await (cluster.isWorker ? import("./workers/worker.js") : import("./command-line.js"));

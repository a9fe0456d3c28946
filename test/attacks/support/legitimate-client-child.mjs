/**
 * A client with a valid key, in a separate process so that the attacker does not slow it
 * down. It calls continuously, on a persistent connection and on a new connection for
 * each call, until its parent disconnects.
 *
 * It measures the CPU time of the service between a call and its response, in multiples
 * of the cost of one call. The result does not depend on the speed or load of the machine.
 */
import { readFileSync } from "node:fs";
import { Agent, request } from "node:http";

const [, , port, key, pid, givenCost] = process.argv;
const pause = 10;
const warmUpCalls = 200;
const measuredCalls = 400;

const persistentAgent = new Agent({ keepAlive: true, maxSockets: 1 });
const failures = [];
const loops = [createLoop(persistentAgent), createLoop(false)];
let isStopped = false;
let maxWork = 0;
let slowest = 0;

function fetchStatus(agent) {
  return new Promise((resolve, reject) => {
    const outgoing = request({
      host: "127.0.0.1",
      port,
      path: "/applications/key",
      agent,
      headers: { "svc-api-key": key },
    });
    outgoing.on("response", (incoming) => {
      incoming.resume();
      incoming.on("end", () => resolve(incoming.statusCode));
      incoming.on("error", reject);
    });
    outgoing.on("error", reject);
    outgoing.end();
  });
}

/** The total CPU time of the service in clock ticks. 0 except on Linux. */
function readCpuTime() {
  if (process.platform !== "linux") {
    return 0;
  }
  const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
  // Fields 14 and 15. The program name before, in parentheses, may contain spaces.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return Number(fields[11]) + Number(fields[12]);
}

async function call(agent) {
  const startedAt = performance.now();
  const before = readCpuTime();
  try {
    const status = await fetchStatus(agent);
    if (status !== 200) {
      failures.push(`status ${status}`);
    }
  } catch (error) {
    failures.push(error.message);
  }
  maxWork = Math.max(maxWork, readCpuTime() - before);
  slowest = Math.max(slowest, performance.now() - startedAt);
}

function createLoop(agent) {
  return { agent, responses: 0, onResponse: () => {} };
}

async function runLoop(loop) {
  while (!isStopped) {
    await call(loop.agent);
    loop.responses++;
    loop.onResponse();
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

/** Resolves when a loop has received responses to `count` calls that start from now on. */
function waitForResponses(loop, count) {
  // The pending call started earlier.
  const target = loop.responses + count + 1;
  return new Promise((resolve) => {
    loop.onResponse = () => {
      if (loop.responses >= target) {
        resolve();
      }
    };
  });
}

/** The CPU time of one call without an attack, in clock ticks. */
async function measureCost() {
  for (let count = 0; count < warmUpCalls; count++) {
    await call(loops[count % 2].agent);
  }
  const before = readCpuTime();
  for (let count = 0; count < measuredCalls; count++) {
    await call(loops[count % 2].agent);
  }
  return (readCpuTime() - before) / measuredCalls;
}

const callCost = givenCost === undefined ? await measureCost() : Number(givenCost);
for (const { agent } of loops) {
  await call(agent);
}
maxWork = 0;
slowest = 0;
const stopped = Promise.all(loops.map(runLoop));
process.send({ callCost });

process.on("message", async ({ waitFor }) => {
  if (waitFor === undefined) {
    isStopped = true;
    await stopped;
    const responses = loops.map((loop) => loop.responses);
    const work = callCost > 0 ? Math.round(maxWork / callCost) : 0;
    // A clock tick is 10 ms.
    const cpuTime = 10 * maxWork;
    process.send({ failures, responses, work, cpuTime, slowest: Math.round(slowest) });
    persistentAgent.destroy();
    process.disconnect();
  } else {
    await Promise.all(loops.map((loop) => waitForResponses(loop, waitFor)));
    process.send("done");
  }
});
process.on("disconnect", () => process.exit());

/**
 * A client with a key that works, in a process of its own so that the attacker
 * does not slow it down. It calls again and again, on one connection that it
 * keeps and on a new one for each call, until its parent disconnects.
 *
 * It measures by how much CPU time the service spends between the start of a
 * call and its answer, in units of what one such call costs. That does not
 * depend on how fast the machine is or how much of it others take.
 */
import { readFileSync } from "node:fs";
import { Agent, request } from "node:http";

const [, , port, key, pid, knownCost] = process.argv;
const pause = 10;
const warmUpCalls = 200;
const measuredCalls = 400;

const kept = new Agent({ keepAlive: true, maxSockets: 1 });
const failures = [];
const lanes = [createLane(kept), createLane(false)];
let isStopped = false;
let mostWork = 0;
let slowest = 0;

function statusOf(agent) {
  return new Promise((resolve, reject) => {
    const outgoing = request({
      ...{ host: "127.0.0.1", port, path: "/applications/key", agent },
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

/** The CPU time of the service so far, in clock ticks. Only Linux tells: elsewhere it is 0. */
function cpuTime() {
  if (process.platform !== "linux") {
    return 0;
  }
  const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
  // The name of the program, in parentheses, may hold anything. These are fields 14 and 15.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return Number(fields[11]) + Number(fields[12]);
}

async function call(agent) {
  const startedAt = performance.now();
  const before = cpuTime();
  try {
    const status = await statusOf(agent);
    if (status !== 200) {
      failures.push(`answered with ${status}`);
    }
  } catch (error) {
    failures.push(error.message);
  }
  mostWork = Math.max(mostWork, cpuTime() - before);
  slowest = Math.max(slowest, performance.now() - startedAt);
}

function createLane(agent) {
  const lane = { agent, served: 0, onServed: () => {} };
  return lane;
}

async function callAgain(lane) {
  while (!isStopped) {
    await call(lane.agent);
    lane.served++;
    lane.onServed();
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

/** Resolves when a lane has had so many more answers to calls that begin after this. */
function served(lane, times) {
  // The call under way may have begun before.
  const goal = lane.served + times + 1;
  return new Promise((resolve) => {
    lane.onServed = () => {
      if (lane.served >= goal) {
        resolve();
      }
    };
  });
}

/** The CPU time of one call while nobody attacks, in clock ticks. */
async function measureCost() {
  for (let count = 0; count < warmUpCalls; count++) {
    await call(lanes[count % 2].agent);
  }
  const before = cpuTime();
  for (let count = 0; count < measuredCalls; count++) {
    await call(lanes[count % 2].agent);
  }
  return (cpuTime() - before) / measuredCalls;
}

const cost = knownCost === undefined ? await measureCost() : Number(knownCost);
for (const { agent } of lanes) {
  await call(agent);
}
mostWork = 0;
slowest = 0;
const stopped = Promise.all(lanes.map(callAgain));
process.send({ cost });

process.on("message", async ({ serve }) => {
  if (serve === undefined) {
    isStopped = true;
    await stopped;
    const counts = lanes.map((lane) => lane.served);
    const work = cost > 0 ? Math.round(mostWork / cost) : 0;
    process.send({ failures, served: counts, work, slowest: Math.round(slowest) });
    kept.destroy();
    process.disconnect();
  } else {
    await Promise.all(lanes.map((lane) => served(lane, serve)));
    process.send("served");
  }
});
process.on("disconnect", () => process.exit());

/**
 * A client with a key that works, in a process of its own, as what it measures
 * must not be the work of the one that attacks. It asks again and again, over a
 * connection that it keeps and over a new one each time, until its input ends;
 * then it tells how that went.
 */
import { Agent, request } from "node:http";

const [, , port, key] = process.argv;
const kept = new Agent({ keepAlive: true, maxSockets: 1 });
const times = [];
const failures = [];
let isStopped = false;

function statusOf(agent) {
  return new Promise((resolve, reject) => {
    const headers = { "svc-api-key": key };
    const outgoing = request({
      host: "127.0.0.1",
      port,
      path: "/applications/key",
      headers,
      agent,
    });
    outgoing.on("response", (incoming) => {
      incoming.resume();
      incoming.on("end", () => resolve(incoming.statusCode));
    });
    outgoing.on("error", reject);
    outgoing.end();
  });
}

async function ask(agent) {
  const started = performance.now();
  try {
    const status = await statusOf(agent);
    if (status !== 200) {
      failures.push(`answered with ${status}`);
    }
  } catch (error) {
    failures.push(error.message);
  }
  times.push(performance.now() - started);
}

async function askAgain(agent) {
  while (!isStopped) {
    await ask(agent);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

process.stdin.on("end", () => {
  isStopped = true;
});
process.stdin.resume();
// What is slow the first time only is not what an attack does.
await ask(kept);
await ask(false);
times.length = 0;
process.stdout.write("ready\n");
await Promise.all([askAgain(kept), askAgain(false)]);
times.sort((one, other) => one - other);
const [p99, slowest] = [times[Math.ceil(times.length * 0.99) - 1], times.at(-1)];
process.stdout.write(JSON.stringify({ failures, served: times.length, p99, slowest }));
kept.destroy();

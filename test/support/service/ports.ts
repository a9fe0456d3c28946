import { once } from "node:events";
import { createServer } from "node:net";

/** Below the ephemeral ports of common systems, which start at 32768 or later. */
const firstPort = 20_000;
/** Each jest worker has its own range of ports. */
const portsPerWorker = 250;
const maxWorkers = 50;

// Starts at a random port, because another test run may be about to reuse its own.
const worker = Number(process.env.JEST_WORKER_ID ?? 0) % maxWorkers;
const start = Math.floor(Math.random() * portsPerWorker);
let tried = 0;

/** Reserves ports for servers that restart on the same port. */
export async function reservePorts(count: number): Promise<number[]> {
  const found: number[] = [];
  while (found.length < count) {
    const port = firstPort + worker * portsPerWorker + ((start + tried++) % portsPerWorker);
    if (await isFree(port)) {
      found.push(port);
    }
  }
  return found;
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    await once(server.listen(port, "127.0.0.1"), "listening");
    return true;
  } catch {
    return false;
  } finally {
    server.close();
  }
}

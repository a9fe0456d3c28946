import { once } from "node:events";
import { createServer } from "node:net";

/** From here on are ports that systems hand to nobody who asks for any: those begin at 32768 or later. */
const first = 20_000;
/** How many ports each worker has for itself, and how many workers there are for which that is so. */
const ports = 500;
const workers = 25;

// It begins somewhere, as those of another run may be about to come back to theirs.
const worker = Number(process.env.JEST_WORKER_ID ?? 0) % workers;
const start = Math.floor(Math.random() * ports);
let taken = 0;

/** Ports for those who end and come back to them, which nobody else is given meanwhile. */
export async function reservePorts(count: number): Promise<number[]> {
  const found: number[] = [];
  while (found.length < count) {
    const port = first + worker * ports + ((start + taken++) % ports);
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

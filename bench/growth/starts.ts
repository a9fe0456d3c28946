import { spawn } from "node:child_process";
import { once } from "node:events";
import { endWithBench } from "../cleanup.js";
import { pinned } from "../cores.js";
import { startLatchkey } from "../servers.js";
import type { GrownStore } from "./stores.js";

/** Milliseconds of one round. */
export interface StartRound {
  /** `node -e 0`, from its start to its end. */
  readonly node: number;
  /** From the start to the answer that it is ready, by the size of the store. */
  readonly ready: ReadonlyMap<number, number>;
}

export async function measureStarts(
  stores: readonly GrownStore[],
  rounds: number,
  cores: string | undefined,
): Promise<StartRound[]> {
  const measured: StartRound[] = [];
  // The first round only brings files into memory.
  for (let round = 0; round <= rounds; round++) {
    const ready = new Map<number, number>();
    const node = await timeOfNode(cores);
    for (const { size, environment } of stores) {
      const server = await startLatchkey(environment, { cores });
      ready.set(size, server.readyAfter);
      await server.stop();
    }
    measured.push({ node, ready });
  }
  return measured.slice(1);
}

async function timeOfNode(cores: string | undefined): Promise<number> {
  const started = performance.now();
  const child = spawn(...pinned(cores, process.execPath, ["-e", "0"]), { stdio: "ignore" });
  endWithBench(child);
  await once(child, "exit");
  return performance.now() - started;
}

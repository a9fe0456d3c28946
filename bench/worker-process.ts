import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { pinned } from "./cores.js";
import { endWithBench } from "./processes.js";

/** A process that does what it is asked, one thing at a time, so that its work is not counted as another's. */
export interface WorkerProcess<Order, Result> {
  ask(order: Order): Promise<Result>;
}

type Reply<Result> = { readonly result: Result } | { readonly error: string };

/** Starts a file of the benchmark, which is to call {@link answerOrders}. */
export function startWorker<Order extends object, Result>(
  file: URL,
  cores: string | undefined,
): WorkerProcess<Order, Result> {
  const command = pinned(cores, process.execPath, ["--import", "tsx", fileURLToPath(file)]);
  const child = spawn(...command, {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
    // Bytes then stay bytes.
    serialization: "advanced",
  });
  endWithBench(child);

  async function ask(order: Order): Promise<Result> {
    const settled = new AbortController();
    const { signal } = settled;
    try {
      child.send(order);
      const [message] = await Promise.race([
        once(child, "message", { signal }),
        once(child, "exit", { signal }).then(() => {
          throw new Error(`${file.pathname} has ended`);
        }),
      ]);
      const reply = message as Reply<Result>;
      if ("error" in reply) {
        throw new Error(reply.error);
      }
      return reply.result;
    } finally {
      settled.abort();
    }
  }

  return { ask };
}

/** The side of the worker: answers all orders until the benchmark is gone. */
export function answerOrders<Order, Result>(carryOut: (order: Order) => Promise<Result>): void {
  async function reply(order: Order): Promise<Reply<Result>> {
    try {
      return { result: await carryOut(order) };
    } catch (error) {
      return { error: (error as Error).message };
    }
  }
  process.on("message", async (order) => {
    process.send?.(await reply(order as Order));
  });
  process.on("disconnect", () => process.exit());
}

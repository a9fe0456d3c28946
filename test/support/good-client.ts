import { spawn } from "node:child_process";
import { once } from "node:events";
import type { ServiceProcess } from "./service-process.js";

/** How a client with a key that works was served. */
export interface GoodClientReport {
  readonly served: number;
  readonly failures: readonly string[];
  /** How long its calls took, in milliseconds. */
  readonly p99: number;
  readonly slowest: number;
}

/** Starts a client that asks from the address of the attacker, and comes back when it was served a few times. */
export async function startGoodClient({ port, firstKey }: ServiceProcess) {
  const args = ["test/support/good-client-child.mjs", String(port), firstKey];
  const child = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "inherit"] });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text) => {
    output += text;
  });
  const closed = once(child, "close");
  await once(child.stdout, "data");
  return {
    async stop(): Promise<GoodClientReport> {
      child.stdin.end();
      await closed;
      return JSON.parse(output.slice("ready\n".length));
    },
  };
}

import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect } from "@jest/globals";
import type { ServiceProcess } from "./service-process.js";

/** How a client with a key that works was served. */
export interface GoodClientReport {
  readonly served: number;
  readonly failures: readonly string[];
  /** How long its calls took, in milliseconds. */
  readonly p99: number;
  readonly slowest: number;
}

/** How long others wait at most while one attacks, in milliseconds. */
const slowestAllowed = 2_000;

type Served = Pick<ServiceProcess, "port" | "firstKey">;

/** Attacks a service, and expects that others are served meanwhile. */
export async function whileServed<T>(service: Served, attack: () => Promise<T>): Promise<T> {
  return (await expectServedAtLast(() => attackOnce(service, attack))).value;
}

/**
 * Attacks, and expects that others are served meanwhile. Where they are not,
 * programs that are no part of this may have kept the machine from everybody,
 * if only for a moment: once more, and that counts. A weakness harms others
 * both times.
 */
export async function expectServedAtLast<T extends GoodClientReport>(
  attack: () => Promise<T>,
  waitForCalm = async () => {},
): Promise<T> {
  let report = await attack();
  if (isHarmed(report)) {
    await waitForCalm();
    report = await attack();
  }
  expectServed(report);
  return report;
}

async function attackOnce<T>(service: Served, attack: () => Promise<T>) {
  const good = await startGoodClient(service);
  const [outcome] = await Promise.allSettled([attack()]);
  const report = await good.stop();
  if (outcome.status === "rejected") {
    throw outcome.reason;
  }
  return { ...report, value: outcome.value };
}

/** Whether somebody was served badly. */
function isHarmed({ failures, slowest }: GoodClientReport): boolean {
  return failures.length > 0 || slowest > slowestAllowed;
}

function expectServed({ failures, served, slowest }: GoodClientReport): void {
  expect(failures).toEqual([]);
  expect(served).toBeGreaterThan(0);
  expect(slowest).toBeLessThanOrEqual(slowestAllowed);
}

/** Starts a client that asks from the address of the attacker, and comes back when it was served a few times. */
export async function startGoodClient({ port, firstKey }: Served) {
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

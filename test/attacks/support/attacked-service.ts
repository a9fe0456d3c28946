import { expect, jest } from "@jest/globals";
import { isFullSuite } from "../../support/jest/suite.js";
import { watchMemory } from "../../support/memory.js";
import { type ServiceWithStore, useService } from "../../support/service/service-process.js";
import {
  type LegitimateClient,
  type LegitimateClientReport,
  startLegitimateClient,
} from "./legitimate-client.js";

/** The default for the maximum memory growth of the service during an attack, in bytes. */
const defaultMemoryGrowth = 256 * 1024 * 1024;

/**
 * The maximum CPU work that a call of the legitimate client may wait for, in multiples of the
 * cost of one call. Most attacks cause less than 500, the worst 3,200, on any machine.
 */
const maxWork = 5_000;

/**
 * How often an attack runs at most. If the system preempts the legitimate client during a
 * call, the call seems to wait for much work. A real weakness fails every attempt.
 */
const maxAttempts = 3;

/** Ends a test that hangs, in milliseconds. */
const testTimeout = 300_000;

/** Timeouts longer than any test, so that they neither end an attack nor fail calls on a slow machine. */
export const noTimeouts = {
  HEADER_TIMEOUT: "24h",
  BODY_TIMEOUT: "24h",
  REQUEST_TIMEOUT: "24h",
};

/** A service in a separate process, with a legitimate client during attacks. */
export interface AttackedService extends ServiceWithStore {
  /**
   * Runs an attack and expects that the legitimate client gets its responses without long
   * delays. May repeat the attack, which must clean up after itself.
   */
  runAttack<T>(
    attack: (client: LegitimateClient) => Promise<T>,
    maxMemoryGrowth?: number,
  ): Promise<T>;
}

interface Outcome<T> extends LegitimateClientReport {
  readonly value: T;
  /** The memory growth of the service in bytes. */
  readonly memoryGrowth: number;
}

/** Starts a service for the tests of a block. */
export function useAttackedService(
  environment: Readonly<Record<string, string>> = {},
): AttackedService {
  jest.setTimeout(testTimeout);
  const service = useService(environment);
  let callCost: number | undefined;

  async function attackOnce<T>(
    attack: (client: LegitimateClient) => Promise<T>,
  ): Promise<Outcome<T>> {
    const { child } = service.process;
    const client = await startLegitimateClient(service, callCost);
    callCost = client.callCost;
    const memory = await watchMemory(child.pid);
    const [outcome] = await Promise.allSettled([attack(client)]);
    const report = await client.stop();
    expect(child.exitCode).toBeNull();
    if (outcome.status === "rejected") {
      throw outcome.reason;
    }
    const result = { ...report, memoryGrowth: await memory.growth(), value: outcome.value };
    print(result);
    expect(report.failures).toEqual([]);
    expect(Math.min(...report.responses)).toBeGreaterThan(0);
    return result;
  }

  return Object.assign(service, {
    async runAttack<T>(
      attack: (client: LegitimateClient) => Promise<T>,
      maxMemoryGrowth = defaultMemoryGrowth,
    ): Promise<T> {
      let outcome = await attackOnce(attack);
      for (let attempt = 1; attempt < maxAttempts && outcome.work > maxWork; attempt++) {
        outcome = await attackOnce(attack);
      }
      const { work, memoryGrowth, value } = outcome;
      expect(work).toBeLessThanOrEqual(maxWork);
      if (isFullSuite) {
        expect(memoryGrowth).toBeLessThan(maxMemoryGrowth);
      }
      return value;
    },
  });
}

function print({
  failures,
  responses,
  work,
  cpuTime,
  slowest,
  memoryGrowth,
}: Outcome<unknown>): void {
  const { currentTestName = "" } = expect.getState();
  process.stdout.write(
    `${currentTestName}: the legitimate client got ${responses.join(" + ")} responses and ${failures.length} failures, ` +
      `waited for the work of ${work} calls at most (${cpuTime} ms of CPU time, ${slowest} ms); ` +
      `${(memoryGrowth / 1024 / 1024).toFixed(1)} MiB more memory\n`,
  );
}

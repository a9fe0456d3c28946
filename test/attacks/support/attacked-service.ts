import { expect, jest } from "@jest/globals";
import { isFullSuite } from "../../support/jest/suite.js";
import { watchMemory } from "../../support/memory.js";
import type { ServiceProcess } from "../../support/service/service-process.js";
import { useService } from "../../support/service/service-process.js";
import {
  type LegitimateClient,
  type LegitimateClientReport,
  startLegitimateClient,
} from "./legitimate-client.js";

/** How many bytes an attack may cost. */
const memoryAllowed = 128 * 1024 * 1024;

/**
 * How much work the service may put before a call of another client, in calls
 * of that client. Most attacks come to less than 200, the worst to 750, however
 * busy the machine is.
 */
const usualWork = 1_500;

/**
 * How often an attack is repeated where others suffer. Where the system stops
 * the good client in the middle of a call and not the service, that call seems
 * to wait for much work. A weakness harms others every time.
 */
const attempts = 3;

/** Ends a test that hangs, in milliseconds. */
const longestTest = 300_000;

/**
 * Timeouts that no test lives to see. What an attacker holds is not freed by
 * them, and no slow machine makes a call late.
 */
export const noTimeouts = {
  ...{ HEADER_TIMEOUT: "24h", BODY_TIMEOUT: "24h", REQUEST_TIMEOUT: "24h" },
};

/** What an attack can know about the other clients. */
export type Others = Pick<LegitimateClient, "waitForResponses">;

/** A service in a process of its own, which is attacked. */
interface Attacked extends ServiceProcess {
  /**
   * Attacks, and expects that another client is served meanwhile, at no great
   * cost. May attack several times, so an attack must clean up after itself.
   */
  during<T>(attack: (others: Others) => Promise<T>, workAllowed?: number): Promise<T>;
}

interface Outcome<T> extends LegitimateClientReport {
  readonly value: T;
  /** By how many bytes the memory of the service grew. */
  readonly memoryGrowth: number;
}

/** Starts the service for the tests of a file. */
export function useAttackedService(environment: Readonly<Record<string, string>> = {}): Attacked {
  jest.setTimeout(longestTest);
  const service = useService(environment);
  let cost: number | undefined;

  async function attackOnce<T>(attack: (others: Others) => Promise<T>): Promise<Outcome<T>> {
    const { child } = service.process;
    const good = await startLegitimateClient(service, cost);
    cost = good.cost;
    const memory = await watchMemory(child.pid);
    const [outcome] = await Promise.allSettled([attack(good)]);
    const report = await good.stop();
    expect(child.exitCode).toBeNull();
    if (outcome.status === "rejected") {
      throw outcome.reason;
    }
    const result = { ...report, memoryGrowth: await memory.growth(), value: outcome.value };
    print(result);
    expect(report.failures).toEqual([]);
    expect(Math.min(...report.served)).toBeGreaterThan(0);
    return result;
  }

  return Object.assign(service, {
    async during<T>(attack: (others: Others) => Promise<T>, workAllowed = usualWork): Promise<T> {
      let outcome = await attackOnce(attack);
      for (let attempt = 1; attempt < attempts && outcome.work > workAllowed; attempt++) {
        outcome = await attackOnce(attack);
      }
      const { work, memoryGrowth, value } = outcome;
      expect(work).toBeLessThanOrEqual(workAllowed);
      if (isFullSuite) {
        expect(memoryGrowth).toBeLessThan(memoryAllowed);
      }
      return value;
    },
  });
}

function print({ failures, served, work, slowest, memoryGrowth }: Outcome<unknown>): void {
  const { currentTestName = "" } = expect.getState();
  process.stdout.write(
    `${currentTestName}: others had ${served.join(" + ")} answers and ${failures.length} failures, ` +
      `waited for the work of ${work} calls at most (${slowest} ms); ` +
      `${(memoryGrowth / 1024 / 1024).toFixed(1)} MiB more memory\n`,
  );
}

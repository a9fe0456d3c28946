import { setTimeout as delay } from "node:timers/promises";
import { expect, jest } from "@jest/globals";
import { useCoreShare } from "./core-share.js";
import { expectServedAtLast, type GoodClientReport, startGoodClient } from "./good-client.js";
import { useService } from "./service-for-file.js";
import type { ServiceProcess } from "./service-process.js";
import { watchMemory } from "./watch-memory.js";

/** How many bytes an attack may cost. */
const memoryAllowed = 128 * 1024 * 1024;

/**
 * Which share of a core a bystander gets at least where the attack, the service
 * and the one who is served have two of them for themselves.
 */
const fairShare = 0.4;
/** How often it is looked for, a second apart. */
const looksForCalm = 8;

/** How long a test may take in which there are two attacks, in milliseconds. */
const longestTest = 90_000;

/** A service in a process of its own, which is attacked. */
export interface Attacked extends ServiceProcess {
  /**
   * Attacks, and expects that others are served meanwhile, at no great cost.
   * Attacks again where they are not, so that an attack must end what it began.
   */
  during<T>(attack: () => Promise<T>): Promise<T>;
}

/** What an attack came to, and what others had of the service meanwhile. */
interface Suffered<T> extends GoodClientReport {
  readonly value: T;
  /** Which share of a core a bystander got. */
  readonly share: number;
}

/** Starts the service for the tests of a file. */
export function useAttacked(environment: Readonly<Record<string, string>> = {}): Attacked {
  jest.setTimeout(longestTest);
  const service = useService(environment);
  const readShare = useCoreShare();

  async function suffer<T>(attack: () => Promise<T>): Promise<Suffered<T>> {
    const { child } = service.process;
    const memory = await watchMemory(child.pid);
    const good = await startGoodClient(service);
    await readShare();
    const [outcome] = await Promise.allSettled([attack()]);
    const share = await readShare();
    const report = await good.stop();
    expect(await memory.grown()).toBeLessThan(memoryAllowed);
    expect(child.exitCode).toBeNull();
    if (outcome.status === "rejected") {
      throw outcome.reason;
    }
    const suffered = { ...report, share, value: outcome.value };
    tell(suffered);
    return suffered;
  }

  /** Waits until a bystander gets its share again, for a while. */
  async function waitForCalm(): Promise<void> {
    let share = 0;
    for (let look = 0; look < looksForCalm && share < fairShare; look++) {
      await delay(1_000);
      share = await readShare();
    }
  }

  return Object.assign(service, {
    async during<T>(attack: () => Promise<T>): Promise<T> {
      return (await expectServedAtLast(() => suffer(attack), waitForCalm)).value;
    },
  });
}

/** Tells what others had of the service, as the slowest alone does not tell it. */
function tell({ served, p99, slowest, share }: Suffered<unknown>): void {
  const { currentTestName = "" } = expect.getState();
  process.stdout.write(
    `${currentTestName}: others had ${served} answers, p99 ${Math.round(p99)} ms, ` +
      `slowest ${Math.round(slowest)} ms; a bystander got ${share.toFixed(2)} of a core\n`,
  );
}

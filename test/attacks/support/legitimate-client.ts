import { fork } from "node:child_process";
import { once } from "node:events";
import type { ServiceProcess } from "../../support/service/service-process.js";

/** How the service treated a client with a key that works. */
export interface LegitimateClientReport {
  /** How many calls were answered on a connection that was kept, and on a new one each. */
  readonly served: readonly [kept: number, fresh: number];
  readonly failures: readonly string[];
  /** How much the service did between the start of a call and its answer at most, in units of what a call costs. Always 0 outside Linux. */
  readonly work: number;
  /** The longest wait for an answer, in milliseconds. To print, not to judge by: machines differ. */
  readonly slowest: number;
}

/** A client in a process of its own that calls again and again. */
export interface LegitimateClient {
  /** The CPU time that a call costs the service, in clock ticks. */
  readonly cost: number;
  /** Resolves when it was answered so many times on either kind of connection, counting only calls that begin from now on. */
  waitForResponses(times: number): Promise<void>;
  stop(): Promise<LegitimateClientReport>;
}

type Served = Pick<ServiceProcess, "port" | "firstKey" | "process">;

/** Starts a client that calls from the attacker's address. It measures what a call costs unless that is known. */
export async function startLegitimateClient(
  { port, firstKey, process: { child: service } }: Served,
  cost?: number,
): Promise<LegitimateClient> {
  const args = [port, firstKey, service.pid, ...(cost === undefined ? [] : [cost])].map(String);
  const child = fork("test/attacks/support/legitimate-client-child.mjs", args, { execArgv: [] });

  const exited = once(child, "exit").then(([code]): never => {
    throw new Error(`The good client ended with ${code}.`);
  });
  // It ends once its work is done, when nobody waits for a message.
  exited.catch(() => {});

  async function nextMessage<T>(): Promise<T> {
    const received = new AbortController();
    const message = once(child, "message", { signal: received.signal });
    try {
      const [value] = await Promise.race([message, exited]);
      return value;
    } finally {
      message.catch(() => {});
      received.abort();
    }
  }

  const { cost: measured } = await nextMessage<{ cost: number }>();
  return {
    cost: measured,
    async waitForResponses(times) {
      child.send({ serve: times });
      await nextMessage();
    },
    stop() {
      child.send({});
      return nextMessage();
    },
  };
}

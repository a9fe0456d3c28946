import { fork } from "node:child_process";
import { once } from "node:events";
import type { ServiceProcess } from "../../support/service/service-process.js";

export interface LegitimateClientReport {
  /** The number of responses on a persistent connection, and on a new connection for each call. */
  readonly responses: readonly [persistent: number, fresh: number];
  readonly failures: readonly string[];
  /**
   * The maximum CPU work of the service between a call and its response, in multiples of the
   * cost of one call. Always 0 except on Linux.
   */
  readonly work: number;
  /** The same in milliseconds. For information only, because machines differ. */
  readonly cpuTime: number;
  /** The maximum latency in milliseconds. For information only, because machines differ. */
  readonly slowest: number;
}

/** A client with a valid key that calls the service continuously from a separate process. */
export interface LegitimateClient {
  /** The CPU time of the service for one call, in clock ticks. */
  readonly callCost: number;
  /** Waits for responses on both kinds of connection to calls that start from now on. */
  waitForResponses(count: number): Promise<void>;
  stop(): Promise<LegitimateClientReport>;
}

type Target = Pick<ServiceProcess, "port" | "firstKey" | "process">;

/** Starts a client with the IP address of the attacker. It measures the cost of a call unless given. */
export async function startLegitimateClient(
  { port, firstKey, process: { child: service } }: Target,
  callCost?: number,
): Promise<LegitimateClient> {
  const args = [port, firstKey, service.pid, ...(callCost === undefined ? [] : [callCost])].map(
    String,
  );
  const child = fork("test/attacks/support/legitimate-client-child.mjs", args, { execArgv: [] });

  const exited = once(child, "exit").then(([code]): never => {
    throw new Error(`The legitimate client exited with ${code}.`);
  });
  // The normal exit after `stop` is not an error.
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

  const { callCost: measured } = await nextMessage<{ callCost: number }>();
  return {
    callCost: measured,
    async waitForResponses(count) {
      child.send({ waitFor: count });
      await nextMessage();
    },
    stop() {
      child.send({});
      return nextMessage();
    },
  };
}

import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
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
export interface LegitimateClient extends ClientProcess<LegitimateClientReport> {
  /** The CPU time of the service for one call, in clock ticks. */
  readonly callCost: number;
  /** Waits for responses on both kinds of connection to calls that start from now on. */
  waitForResponses(count: number): Promise<void>;
}

/** The slowest calls of a tenant that is not attacked. */
export interface OtherTenantReport {
  /** In each round it creates, changes, reads and revokes. */
  readonly rounds: number;
  readonly failures: readonly string[];
  /** The maximum latency in milliseconds, of calls that revoke and of all others. */
  readonly call: number;
  readonly revocation: number;
}

export interface OtherTenant extends ClientProcess<OtherTenantReport> {
  /** Waits for rounds that start from now on. */
  waitForRounds(count: number): Promise<void>;
}

type Target = Pick<ServiceProcess, "port" | "firstKey" | "process">;

/** Starts a client with the IP address of the attacker. It measures the cost of a call unless given. */
export async function startLegitimateClient(
  { port, firstKey, process: { child: service } }: Target,
  callCost?: number,
): Promise<LegitimateClient> {
  const args = [port, firstKey, service.pid, ...(callCost === undefined ? [] : [callCost])];
  const client = startClientProcess<LegitimateClientReport>("legitimate-client-child.mjs", args);
  const { callCost: measured } = await client.nextMessage<{ callCost: number }>();
  return { ...client, callCost: measured, waitForResponses: client.waitFor };
}

/** Starts the calls of a tenant, of which it has a management key. */
export async function startOtherTenant({ port }: Target, key: string): Promise<OtherTenant> {
  const client = startClientProcess<OtherTenantReport>("other-tenant-child.mjs", [port, key]);
  await client.nextMessage();
  return { ...client, waitForRounds: client.waitFor };
}

/** A client in a separate process, so that the attacker does not slow it down. */
interface ClientProcess<Report> {
  stop(): Promise<Report>;
}

function startClientProcess<Report>(script: string, args: readonly unknown[]) {
  const child = fork(join("test/attacks/support", script), args.map(String), { execArgv: [] });

  const exited = once(child, "exit").then(([code]): never => {
    throw new Error(`${script} exited with ${code}.`);
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

  return {
    nextMessage,

    async waitFor(count: number): Promise<void> {
      child.send({ waitFor: count });
      await nextMessage();
    },

    stop(): Promise<Report> {
      child.send({});
      return nextMessage();
    },
  };
}

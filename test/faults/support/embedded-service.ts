import { afterEach } from "@jest/globals";
import { rateLimitsOff } from "../../support/service/rate-limits-off.js";
import type { CapturedProcess } from "../../support/service/run-latchkey.js";
import { type ServiceProcess, useServices } from "../../support/service/service-process.js";

/** The service on an embedded store, in its own process with its workers. */
interface EmbeddedService extends ServiceProcess {
  /** Start time in milliseconds. */
  readonly startedIn: number;
  /** Kills the service with all its workers. */
  kill(): Promise<void>;
}

/** Starts services, and kills those that outlive their test. */
export function useEmbeddedServices() {
  // Also kills services that fail before they listen.
  const startService = useServices();
  let running: EmbeddedService[] = [];

  afterEach(async () => {
    await Promise.all(running.map((service) => service.kill()));
    running = [];
  });

  return async function start(
    DATA_DIR: string,
    environment: Readonly<Record<string, string>> = {},
  ): Promise<EmbeddedService> {
    const startedAt = performance.now();
    // In its own process group, which can be killed at once.
    const started = await startService(
      { ...rateLimitsOff, DATA_DIR, ...environment },
      { detached: true },
    );
    const service = {
      ...started,
      startedIn: performance.now() - startedAt,
      kill: () => killGroup(started.process),
    };
    running.push(service);
    return service;
  };
}

/** Kills a process that was started as `detached`, with all its workers. */
export async function killGroup({ child, ended }: CapturedProcess): Promise<void> {
  try {
    process.kill(-(child.pid as number), "SIGKILL");
  } catch {
    // It has already exited.
  }
  await ended();
}

import { readFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import {
  parseSigningKeys,
  type SecretScanningSettings,
  type SigningKeys,
} from "../../config/secret-scanning.js";

interface SigningKeyOptions {
  readonly settings: SecretScanningSettings;
  readonly log: Logger;
  /** Stops reloading. */
  readonly signal: AbortSignal;
}

/** How often the file is read, in milliseconds. It is polled, because a file watcher loses track of replaced files. */
const interval = 1_000;

/**
 * Returns a function that returns the current public keys. The file is reloaded when it changes. An invalid file is
 * logged once and ignored until it is valid.
 */
export function loadSigningKeys({ settings, log, signal }: SigningKeyOptions): () => SigningKeys {
  const { path } = settings;
  let { content } = settings;
  let current = parseSigningKeys(content);
  let lastWarning: string | undefined;

  async function poll(): Promise<void> {
    for (;;) {
      await delay(interval, undefined, { ref: false, signal }).catch(() => {});
      if (signal.aborted) {
        return;
      }
      await reload();
    }
  }

  async function reload(): Promise<void> {
    try {
      const found = await readFile(path);
      if (!found.equals(content)) {
        current = parseSigningKeys(found);
        content = found;
        log.info({ keys: current.size }, "secret scanning keys reloaded");
      }
      lastWarning = undefined;
    } catch (error) {
      warnOnce((error as Error).message);
    }
  }

  function warnOnce(problem: string): void {
    if (problem !== lastWarning) {
      lastWarning = problem;
      log.warn(`SECRET_SCANNING_KEYS not reloaded, the current keys stay in use: ${problem}`);
    }
  }

  poll();
  return () => current;
}

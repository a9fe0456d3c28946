import type { Logger } from "pino";
import type { LoadedFile } from "../../config/parsers.js";
import { parseSigningKeys, type SigningKeys } from "../../config/secret-scanning.js";
import { pollFile } from "../../lib/polling.js";

interface SigningKeyOptions {
  readonly settings: LoadedFile;
  readonly log: Logger;
  /** Stops reloading. */
  readonly signal: AbortSignal;
}

/**
 * Returns a function that returns the current public keys. The file is reloaded when it changes. An invalid file is
 * logged once and ignored until it is valid.
 */
export function loadSigningKeys({ settings, log, signal }: SigningKeyOptions): () => SigningKeys {
  let current = parseSigningKeys(settings.content);
  const stop = pollFile(settings, {
    apply(found) {
      current = parseSigningKeys(found);
      log.info({ keys: current.size }, "secret scanning keys reloaded");
    },
    onProblem: (problem) =>
      log.warn(`SECRET_SCANNING_KEYS not reloaded, the current keys stay in use: ${problem}`),
  });
  signal.addEventListener("abort", stop, { once: true });
  return () => current;
}

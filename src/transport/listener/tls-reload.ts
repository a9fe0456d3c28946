import { X509Certificate } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import { findTlsProblem, readTlsFiles, type TlsContents, type TlsFiles } from "../../config/tls.js";

interface TlsReloaderOptions {
  readonly files: TlsFiles;
  /** The contents that were read last. */
  readonly contents: TlsContents;
  readonly log: Logger;
}

/** Calls back with the contents of the files whenever they change. Returns a function that stops this. */
export type WatchTls = (onChange: (contents: TlsContents) => void) => () => void;

/**
 * How often the files are read, in milliseconds. They are polled: tools that renew
 * certificates replace files, folders or links, and a file watcher loses track of them.
 */
const interval = 1_000;

/**
 * Reloads TLS files that are replaced one after the other while the server runs.
 * A certificate and key that do not match are logged once and ignored until they do.
 */
export function createTlsReloader({ files, contents, log }: TlsReloaderOptions): WatchTls {
  return (onChange) => {
    let current = contents;
    let lastWarning: string | undefined;
    const stopping = new AbortController();

    async function poll({ signal }: AbortController): Promise<void> {
      while (!signal.aborted) {
        await delay(interval, undefined, { ref: false, signal }).catch(() => {});
        await check();
      }
    }

    async function check(): Promise<void> {
      try {
        const found = await readTlsFiles(files);
        if (!isSame(found, current)) {
          reload(found);
        }
        lastWarning = undefined;
      } catch (error) {
        warnOnce((error as Error).message);
      }
    }

    function reload(found: TlsContents): void {
      const problem = findTlsProblem(found);
      if (problem) {
        throw new Error(problem);
      }
      onChange(found);
      current = found;
      const { validTo } = new X509Certificate(found.cert);
      log.info({ expires_at: new Date(validTo).toISOString() }, "TLS certificate reloaded");
    }

    function warnOnce(problem: string): void {
      if (problem !== lastWarning) {
        lastWarning = problem;
        log.warn(`TLS certificate not reloaded, the current one stays in use: ${problem}`);
      }
    }

    poll(stopping);
    return () => stopping.abort();
  };
}

function isSame(one: TlsContents, other: TlsContents): boolean {
  return (["cert", "key", "clientCa"] as const).every(
    (name) => one[name] === other[name] || other[name]?.equals(one[name] ?? Buffer.alloc(0)),
  );
}

import { X509Certificate } from "node:crypto";
import type { Logger } from "pino";
import { findTlsProblem, readTlsFiles, type TlsContents, type TlsFiles } from "../../config/tls.js";
import { pollForChanges } from "../../lib/polling.js";

interface TlsReloaderOptions {
  readonly files: TlsFiles;
  /** The contents that were read last. */
  readonly contents: TlsContents;
  readonly log: Logger;
}

/** Calls back with the contents of the files whenever they change. Returns a function that stops this. */
export type WatchTls = (onChange: (contents: TlsContents) => void) => () => void;

/**
 * Reloads TLS files that are replaced one after the other while the server runs.
 * A certificate and key that do not match are logged once and ignored until they do.
 */
export function createTlsReloader({ files, contents, log }: TlsReloaderOptions): WatchTls {
  return (onChange) =>
    pollForChanges({
      current: contents,
      read: () => readTlsFiles(files),
      isSame,
      apply(found) {
        const problem = findTlsProblem(found);
        if (problem) {
          throw new Error(problem);
        }
        onChange(found);
        const { validTo } = new X509Certificate(found.cert);
        log.info({ expires_at: new Date(validTo).toISOString() }, "TLS certificate reloaded");
      },
      onProblem: (problem) =>
        log.warn(`TLS certificate not reloaded, the current one stays in use: ${problem}`),
    });
}

function isSame(one: TlsContents, other: TlsContents): boolean {
  return (["cert", "key", "clientCa"] as const).every(
    (name) => one[name] === other[name] || other[name]?.equals(one[name] ?? Buffer.alloc(0)),
  );
}

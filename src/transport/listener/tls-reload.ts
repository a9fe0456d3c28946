import { X509Certificate } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import { readTlsFiles, type TlsContents, type TlsFiles, tlsFaultIn } from "../../config/tls.js";

interface FollowOptions {
  readonly files: TlsFiles;
  /** What they held when they were last read. */
  readonly contents: TlsContents;
  readonly log: Logger;
}

/** Calls back with what the files hold whenever that is something else. Answers with how to stop it. */
export type FollowTls = (take: (contents: TlsContents) => void) => () => void;

/**
 * How often the files are looked at. They are read, not watched: tools that
 * renew certificates replace files, folders or links, and what is watched
 * may be none of these by then.
 */
const interval = 1_000;

/**
 * Follows files that are replaced while they are in use, one after the other:
 * what does not fit together is told once and left alone until it does.
 */
export function createFollowTls({ files, contents, log }: FollowOptions): FollowTls {
  return (take) => {
    let current = contents;
    let told: string | undefined;
    const stopping = new AbortController();

    async function keepLooking({ signal }: AbortController): Promise<void> {
      while (!signal.aborted) {
        await delay(interval, undefined, { ref: false, signal }).catch(() => {});
        await look();
      }
    }

    async function look(): Promise<void> {
      try {
        const found = await readTlsFiles(files);
        if (!isSame(found, current)) {
          change(found);
        }
        told = undefined;
      } catch (error) {
        tellOnce((error as Error).message);
      }
    }

    function change(found: TlsContents): void {
      const fault = tlsFaultIn(found);
      if (fault) {
        throw new Error(fault);
      }
      take(found);
      current = found;
      const { validTo } = new X509Certificate(found.cert);
      log.info({ expires_at: new Date(validTo).toISOString() }, "the certificate was replaced");
    }

    function tellOnce(problem: string): void {
      if (problem !== told) {
        told = problem;
        log.warn(`the certificate stays as it was, until this is mended: ${problem}`);
      }
    }

    keepLooking(stopping);
    return () => stopping.abort();
  };
}

function isSame(one: TlsContents, other: TlsContents): boolean {
  return (["cert", "key", "clientCa"] as const).every(
    (name) => one[name] === other[name] || other[name]?.equals(one[name] ?? Buffer.alloc(0)),
  );
}

import { Code, ConnectError } from "@connectrpc/connect";
import { useEffect, useState } from "react";
import { openStorage } from "../../common/storage.js";
import { retryDelayMs } from "./reachability.js";

/**
 * Where the person asks for it, the key is kept for this tab alone, until it
 * is closed: never where other tabs, or a later visit, would find it.
 */
export const storedKey = openStorage("sessionStorage", "latchkey-key");

/** Signs in with a key, unless that is not wanted any more when the service has answered. */
export type Enter = (key: string, isStillWanted?: () => boolean) => Promise<void>;

interface StoredKeySignIn {
  /** Whether the kept key is being tried. */
  readonly isTried: boolean;
  /** Why it did not work. */
  readonly problem: unknown;
  giveUp(): void;
}

/**
 * Signs in with the key that this tab has kept, if any. While the service is
 * away it is kept and tried again; a key that does not work is forgotten.
 */
export function useStoredKey(enter: Enter): StoredKeySignIn {
  const [isTried, setIsTried] = useState(() => storedKey.read() !== undefined);
  const [problem, setProblem] = useState<unknown>();

  // biome-ignore lint/correctness/useExhaustiveDependencies: once, when the page opens.
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isOver = false;

    async function tryKey(): Promise<void> {
      const kept = storedKey.read();
      if (kept === undefined || isOver) {
        return;
      }
      const isStillWanted = () => !isOver && storedKey.read() === kept;
      try {
        await enter(kept, isStillWanted);
      } catch (thrown) {
        if (isStillWanted()) {
          settle(ConnectError.from(thrown));
        }
      }
    }

    function settle(error: ConnectError): void {
      if (error.code === Code.Unavailable) {
        timer = setTimeout(tryKey, retryDelayMs);
        return;
      }
      if (error.code === Code.Unauthenticated) {
        storedKey.forget();
      }
      setProblem(error);
      setIsTried(false);
    }

    // Not at once: in its strict mode React undoes the first effect and does it again.
    timer = setTimeout(tryKey);
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, []);

  return {
    isTried,
    problem,
    giveUp() {
      storedKey.forget();
      setIsTried(false);
    },
  };
}

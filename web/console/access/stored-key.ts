import { Code, ConnectError } from "@connectrpc/connect";
import { useEffect, useState } from "react";
import { openStorage } from "../../common/storage.js";
import { retryDelayMs } from "./reachability.js";

/** The key is stored on request only, for this tab, until the tab is closed. */
export const storedKey = openStorage("sessionStorage", "latchkey-key");

/** Signs in with a key, unless it was cancelled before the response arrives. */
export type SignInWithKey = (key: string, isCurrent?: () => boolean) => Promise<void>;

interface StoredKeySignIn {
  readonly isSigningIn: boolean;
  readonly problem: unknown;
  cancel(): void;
}

/** Signs in with the stored key. Retries while the service is unreachable, removes an invalid key. */
export function useStoredKey(signIn: SignInWithKey): StoredKeySignIn {
  const [isSigningIn, setIsSigningIn] = useState(() => storedKey.read() !== undefined);
  const [problem, setProblem] = useState<unknown>();

  // biome-ignore lint/correctness/useExhaustiveDependencies: only on mount.
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isUnmounted = false;

    async function tryKey(): Promise<void> {
      const key = storedKey.read();
      if (key === undefined || isUnmounted) {
        return;
      }
      const isCurrent = () => !isUnmounted && storedKey.read() === key;
      try {
        await signIn(key, isCurrent);
      } catch (thrown) {
        if (isCurrent()) {
          handleError(ConnectError.from(thrown));
        }
      }
    }

    function handleError(error: ConnectError): void {
      if (error.code === Code.Unavailable) {
        timer = setTimeout(tryKey, retryDelayMs);
        return;
      }
      if (error.code === Code.Unauthenticated) {
        storedKey.remove();
      }
      setProblem(error);
      setIsSigningIn(false);
    }

    // Deferred: React's strict mode runs the first effect twice.
    timer = setTimeout(tryKey);
    return () => {
      isUnmounted = true;
      clearTimeout(timer);
    };
  }, []);

  return {
    isSigningIn,
    problem,
    cancel() {
      storedKey.remove();
      setIsSigningIn(false);
    },
  };
}

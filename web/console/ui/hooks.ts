import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useState, useSyncExternalStore } from "react";

interface Action {
  readonly isBusy: boolean;
  /** What was thrown the last time. */
  readonly problem: unknown;
  run(): Promise<void>;
}

/** Something that a person does by a button: under way, done, or refused. */
export function useAction(act: () => Promise<void>): Action {
  const [isBusy, setIsBusy] = useState(false);
  const [problem, setProblem] = useState<unknown>();
  return {
    isBusy,
    problem,
    async run() {
      setIsBusy(true);
      setProblem(undefined);
      try {
        await act();
      } catch (thrown) {
        setProblem(thrown);
      } finally {
        setIsBusy(false);
      }
    },
  };
}

/** Whether a media query holds now. */
export function useMediaQuery(query: string): boolean {
  return useSyncExternalStore(
    (listener) => {
      const list = matchMedia(query);
      list.addEventListener("change", listener);
      return () => list.removeEventListener("change", listener);
    },
    () => matchMedia(query).matches,
  );
}

/** Has all that is shown asked for anew, after something was changed. */
export function useRefresh(): () => void {
  const queries = useQueryClient();
  return () => void queries.invalidateQueries();
}

/** How long nothing is typed before it is asked about, in milliseconds. */
export const debounceMs = 250;

/** A value when it has not changed for a moment, so that not every letter is asked about. */
export function useDebounced<T>(value: T): T {
  const [debounced, setDebounced] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setDebounced(value), debounceMs);
    return () => clearTimeout(timer);
  }, [value]);
  return debounced;
}

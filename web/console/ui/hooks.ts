import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";

interface Action<Args extends unknown[]> {
  readonly isBusy: boolean;
  /** The error of the last run. */
  readonly problem: unknown;
  run(...args: Args): Promise<void>;
}

/** The state of an action that a button starts. */
export function useAction<Args extends unknown[]>(
  act: (...args: Args) => Promise<void>,
): Action<Args> {
  const [isBusy, setIsBusy] = useState(false);
  const [problem, setProblem] = useState<unknown>();
  return {
    isBusy,
    problem,
    async run(...args) {
      setIsBusy(true);
      setProblem(undefined);
      try {
        await act(...args);
      } catch (thrown) {
        setProblem(thrown);
      } finally {
        setIsBusy(false);
      }
    },
  };
}

/** Refetches all queries after a change. */
export function useRefresh(): () => void {
  const queries = useQueryClient();
  return () => void queries.invalidateQueries();
}

export const debounceMs = 250;

/** The value once it has not changed for a moment, to avoid a call per keystroke. */
export function useDebounced<T>(value: T): T {
  const [debounced, setDebounced] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setDebounced(value), debounceMs);
    return () => clearTimeout(timer);
  }, [value]);
  return debounced;
}

import { useState } from "react";

export interface Action {
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

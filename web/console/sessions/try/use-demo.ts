import { useTransport } from "@connectrpc/connect-query";
import { type QueryKey, skipToken, useQuery, useQueryClient } from "@tanstack/react-query";
import { useSignedInKey } from "../../sign-in/signed-in-key.js";
import { type Demo, deleteDemoApplications, initialDemo, runStep, type StepId } from "./demo.js";

const demoKey: QueryKey = ["try-session"];

/** Between two steps that run by themselves, so that a person can follow. */
const pauseMs = 600;

interface DemoControls {
  readonly demo: Demo;
  /** The steps of this demo in order. */
  readonly steps: readonly StepId[];
  /** The next step. Undefined after the last one. */
  readonly current: StepId | undefined;
  /** Runs the current step. Without the key of an application it uses the signed-in key. */
  runNext(key?: string): Promise<void>;
  runAll(): Promise<void>;
  /** Ends `runAll` after the step that runs. */
  stop(): void;
  change(changed: Partial<Demo>): void;
  /** Deletes the demo applications and starts again. Returns whether they are deleted. */
  restart(): Promise<boolean>;
}

/** The demo and its actions. It is kept in the query cache, so that it survives visits to other pages. */
export function useDemo(): DemoControls {
  const { may } = useSignedInKey();
  const own = useTransport();
  const queries = useQueryClient();
  const mayCreate = may("application:create") && may("application:delete");
  const initial = initialDemo(mayCreate, may);
  const { data: demo = initial } = useQuery<Demo>({
    queryKey: demoKey,
    initialData: initial,
    queryFn: skipToken,
    gcTime: Number.POSITIVE_INFINITY,
    structuralSharing: false,
  });

  const read = () => queries.getQueryData<Demo>(demoKey) ?? initial;
  const write = (next: Demo) => void queries.setQueryData<Demo>(demoKey, next);

  /** One run at a time. `save` has no effect after a restart or a sign-out, which end the run. */
  async function whileRunning(act: (run: Run) => Promise<void>): Promise<void> {
    if (read().running) {
      return;
    }
    const running = Symbol();
    const isCurrent = () => queries.getQueryData<Demo>(demoKey)?.running === running;
    const save = (changed: Partial<Demo>) => {
      if (isCurrent()) {
        write({ ...read(), ...changed });
      }
    };
    write({ ...read(), running, problem: undefined });
    try {
      await act({ isCurrent, save });
    } catch (problem) {
      save({ problem });
    } finally {
      save({ running: undefined, isRunningAll: false });
    }
  }

  /** Returns whether the next step can follow: the service responded as expected. */
  async function runCurrent({ isCurrent, save }: Run, key?: string): Promise<boolean> {
    const before = read();
    const step = currentStep(before);
    if (step === undefined || !isCurrent()) {
      return false;
    }
    const [result, changed] = await runStep[step](before, { own, may, key, save });
    save({ ...changed, results: { ...read().results, [step]: result } });
    return result.isExpected;
  }

  return {
    demo,
    steps: stepsOf(demo),
    current: currentStep(demo),
    runNext: (key) => whileRunning(async (run) => void (await runCurrent(run, key))),
    runAll: () =>
      whileRunning(async (run) => {
        run.save({ isRunningAll: true });
        while (read().isRunningAll && (await runCurrent(run))) {
          await new Promise((resolve) => setTimeout(resolve, pauseMs));
        }
      }),
    stop: () => write({ ...read(), isRunningAll: false }),
    change: (changed) => write({ ...read(), ...changed }),
    async restart() {
      let isDeleted = false;
      await whileRunning(async ({ isCurrent }) => {
        await deleteDemoApplications(own, read());
        if (isCurrent()) {
          write(initial);
          isDeleted = true;
        }
      });
      return isDeleted;
    },
  };
}

interface Run {
  isCurrent(): boolean;
  save(changed: Partial<Demo>): void;
}

const allSteps: readonly StepId[] = ["create", "open", "early", "authorize", "use", "reuse"];

function stepsOf({ usesOwnKeys }: Demo): readonly StepId[] {
  return usesOwnKeys ? allSteps.filter((step) => step !== "create") : allSteps;
}

function currentStep(demo: Demo): StepId | undefined {
  return stepsOf(demo).find((step) => !demo.results[step]?.isExpected);
}

import { useTransport } from "@connectrpc/connect-query";
import { type QueryKey, skipToken, useQuery, useQueryClient } from "@tanstack/react-query";
import { useAccess } from "../../sign-in/signed-in-key.js";
import { useAction } from "../../ui/hooks.js";
import { type Demo, runStep, type StepId, startDemo } from "./demo.js";

const demoKey: QueryKey = ["try-session"];

/** Between two steps that run by themselves, so that a person can follow. */
const pauseMs = 600;

interface DemoControls {
  readonly demo: Demo;
  /** The steps of this demo in order. */
  readonly steps: readonly StepId[];
  /** The next step. Undefined after the last one. */
  readonly current: StepId | undefined;
  readonly isBusy: boolean;
  /** The error of the last run, if there was no response. */
  readonly problem: unknown;
  /** Runs the current step. Without the key of an application it uses the signed-in key. */
  runNext(key?: string): Promise<void>;
  runAll(): Promise<void>;
  change(changed: Partial<Demo>): void;
  restart(): void;
}

/** The demo and its actions. It is kept in the query cache, so that it survives visits to other pages. */
export function useDemo(): DemoControls {
  const { may } = useAccess();
  const own = useTransport();
  const queries = useQueryClient();
  const whileBusy = useAction((act: () => Promise<void>) => act());
  const mayCreate = may("application:create") && may("application:delete");
  const start = startDemo(mayCreate, may);
  const { data: demo = start } = useQuery<Demo>({
    queryKey: demoKey,
    initialData: start,
    queryFn: skipToken,
    gcTime: Number.POSITIVE_INFINITY,
    structuralSharing: false,
  });

  const read = () => queries.getQueryData<Demo>(demoKey) ?? start;
  const write = (next: Demo) => void queries.setQueryData<Demo>(demoKey, next);

  /** Returns whether the service responded as expected. */
  async function run(key?: string): Promise<boolean> {
    const before = read();
    const step = currentStep(before);
    if (step === undefined) {
      return false;
    }
    const [result, changed] = await runStep[step](before, { own, may, key });
    const now = read();
    write({ ...now, ...changed, results: { ...now.results, [step]: result } });
    return result.isExpected;
  }

  return {
    demo,
    steps: stepsOf(demo),
    current: currentStep(demo),
    isBusy: whileBusy.isBusy,
    problem: whileBusy.problem,
    runNext: (key) => whileBusy.run(async () => void (await run(key))),
    runAll: () =>
      whileBusy.run(async () => {
        while (await run()) {
          await new Promise((resolve) => setTimeout(resolve, pauseMs));
        }
      }),
    change: (changed) => write({ ...read(), ...changed }),
    restart: () => write(start),
  };
}

const allSteps: readonly StepId[] = ["create", "open", "early", "authorize", "use", "reuse"];

function stepsOf({ usesOwnKeys }: Demo): readonly StepId[] {
  return usesOwnKeys ? allSteps.filter((step) => step !== "create") : allSteps;
}

function currentStep(demo: Demo): StepId | undefined {
  return stepsOf(demo).find((step) => !demo.results[step]?.isExpected);
}

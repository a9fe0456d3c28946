import { ApplicationService } from "../../../../gen/latchkey/v1/application_service_pb.js";
import { useClient } from "../../access/use-client.js";
import { Button } from "../../ui/button.js";
import { Problem } from "../../ui/problem.js";
import { useAction } from "../../ui/use-action.js";
import { removeDemoApplications } from "./demo-applications.js";
import type { StepInFlow } from "./flow.js";

/** Starts again, without what was made on the way. */
export function Finish({ flow, change }: Pick<StepInFlow, "flow" | "change">) {
  const applications = useClient(ApplicationService);
  const { run, isBusy, problem } = useAction(async () => {
    if (flow.demo) {
      await removeDemoApplications(applications, flow.demo);
    }
    change({ step: 0, demo: undefined, session: undefined, backend: undefined });
  });
  return (
    <>
      <Problem of={problem} />
      <Button isBusy={isBusy} onClick={run}>
        {flow.demo ? "Remove the demo and start again" : "Start again"}
      </Button>
    </>
  );
}

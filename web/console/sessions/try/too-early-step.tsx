import { createClient } from "@connectrpc/connect";
import { useState } from "react";
import { ApplicationService } from "../../../../gen/latchkey/v1/application_service_pb.js";
import { connect } from "../../access/connection.js";
import { setReached } from "../../access/reach.js";
import { Button } from "../../ui/button.js";
import { useAction } from "../../ui/use-action.js";
import { CurlCommand } from "./curl-command.js";
import type { StepInFlow } from "./flow.js";
import { Refusal } from "./refusal.js";
import { Step } from "./step.js";

/** The key of a session works for nothing before a backend has authorized it. */
export function TooEarlyStep({ flow, change, isArrival }: StepInFlow) {
  const [isTried, setIsTried] = useState(false);
  const { run, isBusy, problem } = useAction(async () => {
    setIsTried(true);
    const transport = connect({ key: flow.session?.sessionKey ?? "", onReach: setReached });
    await createClient(ApplicationService, transport).getApplicationByKey({});
  });
  return (
    <Step
      title="Try it before it is authorized"
      isArrival={isArrival}
      story={
        <p>
          The browser has the key of its session now. It is not authorized yet, so all that it can
          do is to ask who it is.
        </p>
      }
      next="On to the backend"
      onNext={isTried && !isBusy ? () => change({ step: flow.step + 1 }) : undefined}
    >
      <div className="actions">
        <Button tone={isTried ? "plain" : "primary"} isBusy={isBusy} onClick={run}>
          Read my application with the session key
        </Button>
      </div>
      <Refusal of={problem} />
      <CurlCommand method={ApplicationService.method.getApplicationByKey} keyIn="SESSION_KEY" />
    </Step>
  );
}

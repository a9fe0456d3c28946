import { createClient } from "@connectrpc/connect";
import { useState } from "react";
import { SessionService } from "../../../../gen/latchkey/v1/session_service_pb.js";
import { Button } from "../../ui/button.js";
import { useAction } from "../../ui/use-action.js";
import { CurlCommand } from "./curl-command.js";
import type { StepInFlow } from "./flow.js";
import { Refusal } from "./refusal.js";
import { Step } from "./step.js";

const permissions = ["token:read"];

/** A nonce that was spent is worth nothing to whoever finds it. */
export function OnceStep({ flow, isArrival }: StepInFlow) {
  const [isTried, setIsTried] = useState(false);
  const { run, isBusy, problem } = useAction(async () => {
    setIsTried(true);
    if (flow.backend) {
      await createClient(SessionService, flow.backend).authorizeSession({
        nonce: flow.session?.nonce ?? "",
        permissions,
      });
    }
  });
  return (
    <Step
      title="Use the nonce a second time"
      isArrival={isArrival}
      story={
        <p>
          A nonce works once. Whoever reads it later, in a log or on the way, can do nothing with
          it: of any number of calls with it one succeeds.
        </p>
      }
    >
      <div className="actions">
        <Button tone={isTried ? "plain" : "primary"} isBusy={isBusy} onClick={run}>
          Authorize with the same nonce
        </Button>
      </div>
      <Refusal of={problem} />
      {isTried && problem !== undefined && !isBusy && (
        <p>That was all. The session goes on until it ends by itself, or you end it.</p>
      )}
      <CurlCommand
        method={SessionService.method.authorizeSession}
        keyIn="PRIVATE_KEY"
        body={{ nonce: "$NONCE", permissions }}
      />
    </Step>
  );
}

import { createClient } from "@connectrpc/connect";
import { useState } from "react";
import {
  AccessService,
  type WhoAmIResponse,
} from "../../../../gen/latchkey/v1/access_service_pb.js";
import { ApplicationService } from "../../../../gen/latchkey/v1/application_service_pb.js";
import { connect } from "../../access/connection.js";
import { setReached } from "../../access/reach.js";
import { Button } from "../../ui/button.js";
import { Grants } from "../../ui/grants.js";
import { Problem } from "../../ui/problem.js";
import { useAction } from "../../ui/use-action.js";
import { CurlCommand } from "./curl-command.js";
import type { StepInFlow } from "./flow.js";
import { Refusal } from "./refusal.js";
import { Step } from "./step.js";

/** From now on the key of the session has what the backend gave it. */
export function UseStep({ flow, change, isArrival }: StepInFlow) {
  const [me, setMe] = useState<WhoAmIResponse>();
  const [application, setApplication] = useState<string>();
  const transport = () => connect({ key: flow.session?.sessionKey ?? "", onReach: setReached });
  const look = useAction(async () =>
    setMe(await createClient(AccessService, transport()).whoAmI({})),
  );
  const read = useAction(async () => {
    const { name } = await createClient(ApplicationService, transport()).getApplicationByKey({});
    setApplication(name);
  });
  return (
    <Step
      title="Use the session"
      isArrival={isArrival}
      story={
        <p>The browser goes on with its session key, which now has what the backend gave it.</p>
      }
      next="Try the nonce again"
      onNext={me ? () => change({ step: flow.step + 1 }) : undefined}
    >
      <div className="actions">
        <Button tone={me ? "plain" : "primary"} isBusy={look.isBusy} onClick={look.run}>
          Ask who I am with the session key
        </Button>
        <Button isBusy={read.isBusy} onClick={read.run}>
          Read my application again
        </Button>
      </div>
      <Problem of={look.problem} />
      {me && (
        <div role="status" className="notice" data-tone="good">
          <p>
            A session of {me.name}, {me.authorized ? "authorized" : "not authorized"}. It may:
          </p>
          <Grants permissions={me.permissions} rules={me.rules} />
        </div>
      )}
      <Refusal of={read.problem} />
      {application !== undefined && read.problem === undefined && (
        <p role="status" className="notice" data-tone="good">
          It was let through: the application is {application}.
        </p>
      )}
      <CurlCommand method={AccessService.method.whoAmI} keyIn="SESSION_KEY" />
    </Step>
  );
}

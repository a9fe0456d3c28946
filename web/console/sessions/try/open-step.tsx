import { createClient, type Transport } from "@connectrpc/connect";
import { ApplicationService } from "../../../../gen/latchkey/v1/application_service_pb.js";
import { SessionService } from "../../../../gen/latchkey/v1/session_service_pb.js";
import { useAccess } from "../../access/access.js";
import { useClient } from "../../access/use-client.js";
import { Button } from "../../ui/button.js";
import { Problem } from "../../ui/problem.js";
import { useAction } from "../../ui/use-action.js";
import { CurlCommand } from "./curl-command.js";
import { demoPermissions, makeDemoApplications } from "./demo-applications.js";
import type { StepInFlow } from "./flow.js";
import { KeyChoice } from "./key-choice.js";
import { Step } from "./step.js";

/** A browser opens a session with the public key that it has. */
export function OpenStep({ flow, change, isArrival }: StepInFlow) {
  async function open(transport: Transport): Promise<void> {
    const session = await createClient(SessionService, transport).createSession({});
    change({ session, step: flow.step + 1 });
  }
  return (
    <Step
      title="Open a session, as a browser does"
      isArrival={isArrival}
      story={
        <p>
          A public key lives in web pages and apps, where everybody can read it. All that it does
          here is to open a session, which has no access yet.
        </p>
      }
    >
      <DemoOffer flow={flow} change={change} />
      <KeyChoice
        key={flow.demo?.shop.id}
        type="public"
        label="Public key"
        madeKey={flow.demo?.shop.key}
        action="Open a session"
        act={open}
      />
      <CurlCommand method={SessionService.method.createSession} keyIn="PUBLIC_KEY" />
    </Step>
  );
}

/** Who may make applications need not have keys at hand. */
function DemoOffer({ flow, change }: Pick<StepInFlow, "flow" | "change">) {
  const { may } = useAccess();
  const applications = useClient(ApplicationService);
  const { run, isBusy, problem } = useAction(async () =>
    change({ demo: await makeDemoApplications(applications, demoPermissions(may)) }),
  );
  if (flow.demo || !may("application:create") || !may("application:delete")) {
    return null;
  }
  return (
    <div className="demo-offer">
      <p>
        No keys at hand? Have a shop and its backend made for an hour, and remove them at the end.
      </p>
      <Problem of={problem} />
      <div className="actions">
        <Button isBusy={isBusy} onClick={run}>
          Make demo applications
        </Button>
      </div>
    </div>
  );
}

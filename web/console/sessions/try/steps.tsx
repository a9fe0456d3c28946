import { createClient, type Transport } from "@connectrpc/connect";
import { useState } from "react";
import {
  AccessService,
  type WhoAmIResponse,
} from "../../../../gen/latchkey/v1/access_service_pb.js";
import { ApplicationService } from "../../../../gen/latchkey/v1/application_service_pb.js";
import { SessionService } from "../../../../gen/latchkey/v1/session_service_pb.js";
import { useAccess } from "../../access/access.js";
import { connect, useClient } from "../../access/connection.js";
import { setReachable } from "../../access/reachability.js";
import { Grants } from "../../rules/grants.js";
import { Button } from "../../ui/buttons.js";
import { useAction } from "../../ui/hooks.js";
import { Problem } from "../../ui/page.js";
import { createDemoApplications, demoPermissions, type StepViewProps } from "./flow.js";
import { KeyChoice } from "./key-choice.js";
import { CurlCommand, ExpectedError, Step } from "./step.js";

/** A browser opens a session with the public key that it has. */
export function OpenStep({ flow, change, isArrival }: StepViewProps) {
  async function open(transport: Transport): Promise<void> {
    const session = await createClient(SessionService, transport).createSession({});
    change({ session, step: flow.step + 1 });
  }
  return (
    <Step
      title="Open a session, as a browser does"
      isArrival={isArrival}
      description={
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
        demoKey={flow.demo?.shop.key}
        action="Open a session"
        act={open}
      />
      <CurlCommand method={SessionService.method.createSession} keyIn="PUBLIC_KEY" />
    </Step>
  );
}

/** Who may make applications need not have keys at hand. */
function DemoOffer({ flow, change }: Pick<StepViewProps, "flow" | "change">) {
  const { may } = useAccess();
  const applications = useClient(ApplicationService);
  const { run, isBusy, problem } = useAction(async () =>
    change({ demo: await createDemoApplications(applications, demoPermissions(may)) }),
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

/** The key of a session works for nothing before a backend has authorized it. */
export function UnauthorizedStep({ flow, change, isArrival }: StepViewProps) {
  const [isTried, setIsTried] = useState(false);
  const { run, isBusy, problem } = useAction(async () => {
    setIsTried(true);
    const transport = connect({ key: flow.session?.sessionKey ?? "", onReachable: setReachable });
    await createClient(ApplicationService, transport).getApplicationByKey({});
  });
  return (
    <Step
      title="Try it before it is authorized"
      isArrival={isArrival}
      description={
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
      <ExpectedError of={problem} />
      <CurlCommand method={ApplicationService.method.getApplicationByKey} keyIn="SESSION_KEY" />
    </Step>
  );
}

/** From now on the key of the session has what the backend gave it. */
export function UseStep({ flow, change, isArrival }: StepViewProps) {
  const [me, setMe] = useState<WhoAmIResponse>();
  const [application, setApplication] = useState<string>();
  const transport = () =>
    connect({ key: flow.session?.sessionKey ?? "", onReachable: setReachable });
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
      description={
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
      <ExpectedError of={read.problem} />
      {application !== undefined && read.problem === undefined && (
        <p role="status" className="notice" data-tone="good">
          It was let through: the application is {application}.
        </p>
      )}
      <CurlCommand method={AccessService.method.whoAmI} keyIn="SESSION_KEY" />
    </Step>
  );
}

const permissions = ["token:read"];

/** A nonce that was spent is worth nothing to whoever finds it. */
export function NonceReuseStep({ flow, isArrival }: StepViewProps) {
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
      description={
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
      <ExpectedError of={problem} />
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

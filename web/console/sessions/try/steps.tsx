import { createClient, type Transport } from "@connectrpc/connect";
import { useState } from "react";
import {
  AccessService,
  type WhoAmIResponse,
} from "../../../../gen/latchkey/v1/access_service_pb.js";
import { ApplicationService } from "../../../../gen/latchkey/v1/application_service_pb.js";
import { SessionService } from "../../../../gen/latchkey/v1/session_service_pb.js";
import { problemOf } from "../../../../src/contract/problem-report.js";
import { Grants } from "../../rules/grants.js";
import { connect, useClient } from "../../sign-in/connection.js";
import { useAccess } from "../../sign-in/signed-in-key.js";
import { Button } from "../../ui/buttons.js";
import { useAction } from "../../ui/hooks.js";
import { Problem } from "../../ui/page.js";
import { createDemoApplications, demoPermissions, type StepViewProps } from "./flow.js";
import { CurlCommand, ExpectedError, KeyChoice, Step } from "./step.js";

export function OpenStep({ flow, change, isArrival }: StepViewProps) {
  async function open(transport: Transport): Promise<void> {
    const session = await createClient(SessionService, transport).createSession({});
    change({ session, step: flow.step + 1 });
  }
  return (
    <Step
      title="Open a session as a browser"
      isArrival={isArrival}
      description={
        <p>
          A public key is part of a web page or app, where anyone can read it. Here it only opens a
          session, which has no permissions yet.
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
      <CurlCommand method={SessionService.method.createSession} keyVariable="PUBLIC_KEY" />
    </Step>
  );
}

/** Offers temporary applications to users who may create them. */
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
      <p>No keys at hand? Create a demo shop and its backend. They expire after an hour.</p>
      <Problem error={problem} />
      <div className="actions">
        <Button isBusy={isBusy} onClick={run}>
          Create demo applications
        </Button>
      </div>
    </div>
  );
}

/** A session key has no permissions before authorization. */
export function UnauthorizedStep({ flow, change, isArrival }: StepViewProps) {
  const [isTried, setIsTried] = useState(false);
  const { run, isBusy, problem } = useAction(async () => {
    setIsTried(true);
    const transport = connect({ key: flow.session?.sessionKey ?? "" });
    await createClient(ApplicationService, transport).getApplicationByKey({});
  });
  return (
    <Step
      title="Use the session before authorization"
      isArrival={isArrival}
      description={
        <p>
          The browser now has a session key. The session is not authorized yet, so the key can only
          call whoami.
        </p>
      }
      next="Continue as the backend"
      onNext={isTried && !isBusy ? () => change({ step: flow.step + 1 }) : undefined}
    >
      <div className="actions">
        <Button tone={isTried ? "plain" : "primary"} isBusy={isBusy} onClick={run}>
          Read my application with the session key
        </Button>
      </div>
      <ExpectedError error={problem} />
      <CurlCommand
        method={ApplicationService.method.getApplicationByKey}
        keyVariable="SESSION_KEY"
      />
    </Step>
  );
}

/** The session key now has the granted permissions. */
export function UseStep({ flow, change, isArrival }: StepViewProps) {
  const [me, setMe] = useState<WhoAmIResponse>();
  const [application, setApplication] = useState<string>();
  const transport = () => connect({ key: flow.session?.sessionKey ?? "" });
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
        <p>The session key of the browser now has the permissions that the backend granted.</p>
      }
      next="Reuse the nonce"
      onNext={me ? () => change({ step: flow.step + 1 }) : undefined}
    >
      <div className="actions">
        <Button tone={me ? "plain" : "primary"} isBusy={look.isBusy} onClick={look.run}>
          Call whoami with the session key
        </Button>
        <Button isBusy={read.isBusy} onClick={read.run}>
          Read my application again
        </Button>
      </div>
      <Problem error={look.problem} />
      {me && (
        <div role="status" className="notice" data-tone="good">
          <p>
            A session of {me.name}, {me.authorized ? "authorized" : "not authorized"}. Permissions:
          </p>
          <Grants permissions={me.permissions} rules={me.rules} />
        </div>
      )}
      <ExpectedError error={read.problem} />
      {application !== undefined && read.problem === undefined && (
        <p role="status" className="notice" data-tone="good">
          Allowed. The application is {application}.
        </p>
      )}
      <CurlCommand method={AccessService.method.whoAmI} keyVariable="SESSION_KEY" />
    </Step>
  );
}

const permissions = ["token:read"];

/** A nonce can be used only once. */
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
  const isDone = problem !== undefined && problemOf(problem).code === "nonce_used" && !isBusy;
  return (
    <Step
      title="Reuse the nonce"
      isArrival={isArrival}
      description={
        <p>
          A nonce works only once, even if several calls use it at the same time. A used nonce that
          leaks, for example into a log, cannot be used again.
        </p>
      }
    >
      <div className="actions">
        <Button tone={isTried ? "plain" : "primary"} isBusy={isBusy} onClick={run}>
          Authorize with the same nonce
        </Button>
      </div>
      <ExpectedError error={problem} />
      {isDone && <p>Done. The session is valid until it expires or is revoked.</p>}
      <CurlCommand
        method={SessionService.method.authorizeSession}
        keyVariable="PRIVATE_KEY"
        body={{ nonce: "$NONCE", permissions }}
      />
    </Step>
  );
}

import { createClient, type Transport } from "@connectrpc/connect";
import { TransportProvider } from "@connectrpc/connect-query";
import { type QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { type FormEvent, type ReactNode, useRef, useState } from "react";
import { AccessService, type WhoAmIResponse } from "../../../gen/latchkey/v1/access_service_pb.js";
import { Live } from "../live/live.js";
import { Button } from "../ui/buttons.js";
import { Logo } from "../ui/display.js";
import { KeyField } from "../ui/fields.js";
import { Problem } from "../ui/page.js";
import { WithAccess } from "./access.js";
import { connect, createQueries } from "./connection.js";
import { setReached } from "./reachability.js";
import { type Enter, keptKey, useKeptKey } from "./stored-key.js";

const keyEnded =
  "Your key does not work any more: it has expired, or was replaced, disabled or deleted. Sign in with another one.";

interface Visit {
  readonly me: WhoAmIResponse;
  readonly transport: Transport;
  readonly queries: QueryClient;
}

/** Shows its children to whoever has signed in, and asks others to. */
export function SignedIn({ children }: { readonly children: ReactNode }) {
  const [visit, setVisit] = useState<Visit>();
  const [farewell, setFarewell] = useState<string>();
  const present = useRef<Visit>(undefined);

  /** Answers that come late, for a visit that is over, end none that has begun since. */
  function leave(left: Visit, reason?: string): void {
    if (present.current === left) {
      present.current = undefined;
      keptKey.forget();
      left.queries.clear();
      setFarewell(reason);
      setVisit(undefined);
    }
  }

  async function enter(key: string, isStillWanted = () => true): Promise<void> {
    const me = await createClient(AccessService, connect({ key, onReach: setReached })).whoAmI({});
    if (!isStillWanted()) {
      return;
    }
    const onKeyRefused = () => leave(entered, keyEnded);
    const transport = connect({ key, onReach: setReached, onKeyRefused });
    const entered: Visit = { me, transport, queries: createQueries() };
    present.current = entered;
    setFarewell(undefined);
    setVisit(entered);
  }

  if (!visit) {
    return <SignIn enter={enter} farewell={farewell} />;
  }
  return (
    <TransportProvider transport={visit.transport}>
      <QueryClientProvider client={visit.queries}>
        <WithAccess first={visit.me} signOut={() => leave(visit)}>
          <Live>{children}</Live>
        </WithAccess>
      </QueryClientProvider>
    </TransportProvider>
  );
}

interface SignInProps {
  readonly enter: Enter;
  /** Why the person is here again. */
  readonly farewell: string | undefined;
}

/** Asks for a key, or takes the one that this tab has kept. */
function SignIn({ enter, farewell }: SignInProps) {
  const kept = useKeptKey(enter);
  if (kept.isTried) {
    return (
      <Front>
        <p role="status">Signing in with the key that this tab has kept…</p>
        <Button onClick={kept.giveUp}>Use another key</Button>
      </Front>
    );
  }
  return (
    <Front>
      {farewell !== undefined && (
        <p role="alert" className="notice" data-tone="warning">
          {farewell}
        </p>
      )}
      <KeyForm enter={enter} firstProblem={kept.problem} />
    </Front>
  );
}

function Front({ children }: { readonly children: ReactNode }) {
  return (
    <main className="sign-in">
      <div className="card">
        <Logo />
        <h1>Sign in</h1>
        {children}
      </div>
    </main>
  );
}

interface KeyFormProps extends Pick<SignInProps, "enter"> {
  readonly firstProblem: unknown;
}

function KeyForm({ enter, firstProblem }: KeyFormProps) {
  const [key, setKey] = useState("");
  const [isKept, setIsKept] = useState(false);
  const [isBusy, setIsBusy] = useState(false);
  const [problem, setProblem] = useState<unknown>(firstProblem);

  async function submit(event: FormEvent): Promise<void> {
    event.preventDefault();
    setIsBusy(true);
    setProblem(undefined);
    try {
      await enter(key);
      if (isKept) {
        keptKey.keep(key);
      }
    } catch (thrown) {
      setProblem(thrown);
      setIsBusy(false);
    }
  }

  return (
    <form onSubmit={submit}>
      <KeyField
        label="API key"
        hint="It stays in this page, and is sent to this service only."
        placeholder="lk_mgt_…"
        isRequired
        value={key}
        onChange={setKey}
      />
      <label className="check">
        <input
          type="checkbox"
          checked={isKept}
          onChange={({ target }) => setIsKept(target.checked)}
        />
        Keep it until this tab is closed
      </label>
      <Problem of={problem} />
      <Button type="submit" tone="primary" isBusy={isBusy}>
        Sign in
      </Button>
    </form>
  );
}

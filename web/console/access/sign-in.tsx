import { createClient, type Transport } from "@connectrpc/connect";
import { TransportProvider } from "@connectrpc/connect-query";
import { type QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { type FormEvent, type ReactNode, useRef, useState } from "react";
import { AccessService, type WhoAmIResponse } from "../../../gen/latchkey/v1/access_service_pb.js";
import { LiveProvider } from "../live/live.js";
import { Button } from "../ui/buttons.js";
import { Logo } from "../ui/display.js";
import { KeyField } from "../ui/fields.js";
import { Problem } from "../ui/page.js";
import { AccessProvider } from "./access.js";
import { connect, createQueries } from "./connection.js";
import { setReachable } from "./reachability.js";
import { type Enter, storedKey, useStoredKey } from "./stored-key.js";

const keyRevokedNotice =
  "Your key does not work any more: it has expired, or was replaced, disabled or deleted. Sign in with another one.";

interface SignInState {
  readonly me: WhoAmIResponse;
  readonly transport: Transport;
  readonly queries: QueryClient;
}

/** Shows its children to whoever has signed in, and asks others to. */
export function RequireSignIn({ children }: { readonly children: ReactNode }) {
  const [visit, setVisit] = useState<SignInState>();
  const [notice, setFarewell] = useState<string>();
  const present = useRef<SignInState>(undefined);

  /** Answers that come late, for a visit that is over, end none that has begun since. */
  function leave(left: SignInState, reason?: string): void {
    if (present.current === left) {
      present.current = undefined;
      storedKey.forget();
      left.queries.clear();
      setFarewell(reason);
      setVisit(undefined);
    }
  }

  async function enter(key: string, isStillWanted = () => true): Promise<void> {
    const me = await createClient(
      AccessService,
      connect({ key, onReachable: setReachable }),
    ).whoAmI({});
    if (!isStillWanted()) {
      return;
    }
    const onKeyRefused = () => leave(entered, keyRevokedNotice);
    const transport = connect({ key, onReachable: setReachable, onKeyRefused });
    const entered: SignInState = { me, transport, queries: createQueries() };
    present.current = entered;
    setFarewell(undefined);
    setVisit(entered);
  }

  if (!visit) {
    return <SignIn enter={enter} notice={notice} />;
  }
  return (
    <TransportProvider transport={visit.transport}>
      <QueryClientProvider client={visit.queries}>
        <AccessProvider first={visit.me} signOut={() => leave(visit)}>
          <LiveProvider>{children}</LiveProvider>
        </AccessProvider>
      </QueryClientProvider>
    </TransportProvider>
  );
}

interface SignInProps {
  readonly enter: Enter;
  /** Why the person is here again. */
  readonly notice: string | undefined;
}

/** Asks for a key, or takes the one that this tab has kept. */
function SignIn({ enter, notice }: SignInProps) {
  const kept = useStoredKey(enter);
  if (kept.isTried) {
    return (
      <SignInLayout>
        <p role="status">Signing in with the key that this tab has kept…</p>
        <Button onClick={kept.giveUp}>Use another key</Button>
      </SignInLayout>
    );
  }
  return (
    <SignInLayout>
      {notice !== undefined && (
        <p role="alert" className="notice" data-tone="warning">
          {notice}
        </p>
      )}
      <KeyForm enter={enter} firstProblem={kept.problem} />
    </SignInLayout>
  );
}

function SignInLayout({ children }: { readonly children: ReactNode }) {
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
        storedKey.keep(key);
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

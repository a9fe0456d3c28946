import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { TransportProvider } from "@connectrpc/connect-query";
import { type QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { type FormEvent, type ReactNode, useEffect, useRef, useState } from "react";
import { useRouter } from "wouter";
import { navigate } from "wouter/use-browser-location";
import { AccessService, type WhoAmIResponse } from "../../../gen/latchkey/v1/access_service_pb.js";
import { openStorage } from "../../common/storage.js";
import { LiveProvider } from "../live/live.js";
import { Button } from "../ui/buttons.js";
import { Logo, Notice } from "../ui/display.js";
import { Checkbox, KeyField } from "../ui/fields.js";
import { leavePage } from "../ui/leave-guard.js";
import { retryDelayMs } from "../ui/outage.js";
import { Problem } from "../ui/page.js";
import { dismissToasts } from "../ui/toast.js";
import { endWaiting } from "../ui/waiting-calls.js";
import { connect, createQueries } from "./connection.js";
import { SignedInKeyProvider } from "./signed-in-key.js";

const invalidKeyNotice =
  "Your key is no longer valid. It expired or was revoked, or its application was disabled or deleted. Sign in with another key.";

interface SignInState {
  readonly me: WhoAmIResponse;
  readonly transport: Transport;
  readonly queries: QueryClient;
}

interface RequireSignInProps {
  /** The page after a sign-out. */
  readonly home: string;
  readonly children: ReactNode;
}

/** Shows the sign-in page until a key is accepted. */
export function RequireSignIn({ home, children }: RequireSignInProps) {
  const [state, setState] = useState<SignInState>();
  const [notice, setNotice] = useState<string>();
  const active = useRef<SignInState>(undefined);
  const { base } = useRouter();

  /** A late response of an earlier sign-in must not sign out the current one. */
  function signOut(from: SignInState, reason?: string): void {
    if (active.current === from) {
      active.current = undefined;
      storedKey.remove();
      from.queries.clear();
      endWaiting("canceled");
      dismissToasts();
      setNotice(reason);
      setState(undefined);
    }
  }

  async function signIn(key: string, isCurrent = () => true): Promise<void> {
    const me = await createClient(AccessService, connect({ key })).whoAmI({});
    if (!isCurrent()) {
      return;
    }
    const onKeyRefused = () => signOut(next, invalidKeyNotice);
    const transport = connect({ key, onKeyRefused });
    const next: SignInState = { me, transport, queries: createQueries() };
    active.current = next;
    setNotice(undefined);
    setState(next);
  }

  if (!state) {
    return <SignIn signIn={signIn} notice={notice} />;
  }

  function leave(): void {
    signOut(state as SignInState);
    // The next key may not be allowed to read this page. The prompts of the page are already confirmed.
    navigate(`${base}${home}`, { replace: true });
  }

  return (
    <TransportProvider transport={state.transport}>
      <QueryClientProvider client={state.queries}>
        <SignedInKeyProvider first={state.me} signOut={() => leavePage(leave)}>
          <LiveProvider>{children}</LiveProvider>
        </SignedInKeyProvider>
      </QueryClientProvider>
    </TransportProvider>
  );
}

interface SignInProps {
  readonly signIn: SignInWithKey;
  /** Why the previous key was signed out. */
  readonly notice: string | undefined;
}

/** Prompts for a key, or uses the key stored for this tab. */
function SignIn({ signIn, notice }: SignInProps) {
  const stored = useStoredKey(signIn);
  if (stored.isSigningIn) {
    return (
      <SignInLayout>
        <p role="status">Signing in with the stored key…</p>
        <Button onClick={stored.cancel}>Use another key</Button>
      </SignInLayout>
    );
  }
  return (
    <SignInLayout>
      {notice !== undefined && (
        <Notice role="alert" tone="warning">
          <p>{notice}</p>
        </Notice>
      )}
      <KeyForm signIn={signIn} firstProblem={stored.problem} />
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

interface KeyFormProps extends Pick<SignInProps, "signIn"> {
  readonly firstProblem: unknown;
}

function KeyForm({ signIn, firstProblem }: KeyFormProps) {
  const [key, setKey] = useState("");
  const [isRemembered, setIsRemembered] = useState(false);
  const [isBusy, setIsBusy] = useState(false);
  const [problem, setProblem] = useState<unknown>(firstProblem);
  const field = useRef<HTMLInputElement>(null);
  const isRefused =
    problem !== undefined && ConnectError.from(problem).code === Code.Unauthenticated;

  useEffect(() => field.current?.focus(), []);

  async function submit(event: FormEvent): Promise<void> {
    event.preventDefault();
    setIsBusy(true);
    setProblem(undefined);
    try {
      await signIn(key);
      if (isRemembered) {
        storedKey.write(key);
      } else {
        // An earlier key that could not be tried, for example during an outage.
        storedKey.remove();
      }
    } catch (error) {
      setProblem(error);
      setIsBusy(false);
      // The next key replaces this one.
      field.current?.focus();
      field.current?.select();
    }
  }

  return (
    <form onSubmit={submit}>
      <KeyField
        ref={field}
        label="API key"
        hint="Paste the key that the first start printed. It stays in this page and is sent only to this service."
        placeholder="lk_mgt_…"
        isRequired
        errors={isRefused ? [describeRefusedKey(key)] : []}
        value={key}
        onChange={(next) => {
          setKey(next);
          setProblem(undefined);
        }}
      />
      <Checkbox
        label="Remember until this tab is closed"
        checked={isRemembered}
        onChange={setIsRemembered}
      />
      {!isRefused && <Problem error={problem} />}
      <Button type="submit" tone="primary" isBusy={isBusy}>
        Sign in
      </Button>
      <p className="hint">
        No key? With MongoDB, or if it is lost, create one with <code>latchkey bootstrap</code>.
      </p>
    </form>
  );
}

/** Explains why the service may have refused a key, and what to do. */
function describeRefusedKey(key: string): string {
  if (key.startsWith("lk_non_")) {
    return "This is a nonce, not a key. Use the key of an application.";
  }
  if (key !== "" && !key.startsWith("lk_")) {
    return "The service does not accept this key. The keys that it creates start with lk_. Copy the key as it was shown when it was created.";
  }
  return "The service does not accept this key. Copy the whole key again, or use another one. It may be incomplete, expired, replaced or revoked, or its application may be disabled.";
}

/** The key is stored on request only, for this tab, until the tab is closed. */
const storedKey = openStorage("sessionStorage", "latchkey-key");

/** Signs in with a key, unless it was canceled before the response arrives. */
type SignInWithKey = (key: string, isCurrent?: () => boolean) => Promise<void>;

interface StoredKeySignIn {
  readonly isSigningIn: boolean;
  readonly problem: unknown;
  cancel(): void;
}

/** Signs in with the stored key. Retries while the service is unreachable, removes an invalid key. */
function useStoredKey(signIn: SignInWithKey): StoredKeySignIn {
  const [isSigningIn, setIsSigningIn] = useState(() => storedKey.read() !== undefined);
  const [problem, setProblem] = useState<unknown>();

  // biome-ignore lint/correctness/useExhaustiveDependencies: only on mount.
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isUnmounted = false;

    async function tryKey(): Promise<void> {
      const key = storedKey.read();
      if (key === undefined || isUnmounted) {
        return;
      }
      const isCurrent = () => !isUnmounted && storedKey.read() === key;
      try {
        await signIn(key, isCurrent);
      } catch (error) {
        if (isCurrent()) {
          handleError(ConnectError.from(error));
        }
      }
    }

    function handleError(error: ConnectError): void {
      if (error.code === Code.Unavailable) {
        timer = setTimeout(tryKey, retryDelayMs);
        return;
      }
      if (error.code === Code.Unauthenticated) {
        storedKey.remove();
      }
      setProblem(error);
      setIsSigningIn(false);
    }

    // Deferred: React's strict mode runs the first effect twice.
    timer = setTimeout(tryKey);
    return () => {
      isUnmounted = true;
      clearTimeout(timer);
    };
  }, []);

  return {
    isSigningIn,
    problem,
    cancel() {
      storedKey.remove();
      setIsSigningIn(false);
    },
  };
}

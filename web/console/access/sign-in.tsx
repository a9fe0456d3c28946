import { type FormEvent, type ReactNode, useState } from "react";
import { Button } from "../ui/button.js";
import { KeyField } from "../ui/key-field.js";
import { Logo } from "../ui/logo.js";
import { Problem } from "../ui/problem.js";
import { keptKey } from "./kept-key.js";
import { type Enter, useKeptKey } from "./use-kept-key.js";

interface SignInProps {
  readonly enter: Enter;
  /** Why the person is here again. */
  readonly farewell: string | undefined;
}

/** Asks for a key, or takes the one that this tab has kept. */
export function SignIn({ enter, farewell }: SignInProps) {
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

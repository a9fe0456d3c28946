import { type FormEvent, useEffect, useState } from "react";
import { Button } from "../ui/button.js";
import { Field } from "../ui/field.js";
import { Logo } from "../ui/logo.js";
import { Problem } from "../ui/problem.js";
import { keptKey } from "./kept-key.js";

interface SignInProps {
  enter(key: string): Promise<void>;
  /** Why the person is here again. */
  readonly farewell: string | undefined;
}

/** Asks for a key, or takes the one that this tab has kept. */
export function SignIn({ enter, farewell }: SignInProps) {
  const [key, setKey] = useState("");
  const [isKept, setIsKept] = useState(false);
  const [isBusy, setIsBusy] = useState(() => keptKey.read() !== undefined);
  const [problem, setProblem] = useState<unknown>();

  async function tryKey(tried: string): Promise<void> {
    setIsBusy(true);
    setProblem(undefined);
    try {
      await enter(tried);
    } catch (thrown) {
      setProblem(thrown);
      setIsBusy(false);
    }
  }

  // biome-ignore lint/correctness/useExhaustiveDependencies: once, when the page opens.
  useEffect(() => {
    const kept = keptKey.read();
    if (kept !== undefined) {
      void tryKey(kept);
    }
  }, []);

  function submit(event: FormEvent): void {
    event.preventDefault();
    const trimmed = key.trim();
    if (isKept) {
      keptKey.keep(trimmed);
    }
    void tryKey(trimmed);
  }

  return (
    <main className="sign-in">
      <form className="card" onSubmit={submit}>
        <Logo />
        <h1>Sign in</h1>
        {farewell !== undefined && (
          <p role="alert" className="notice" data-tone="warning">
            {farewell}
          </p>
        )}
        <Field label="API key" hint="It stays in this page, and is sent to this service only.">
          {(props) => (
            <input
              {...props}
              type="password"
              autoComplete="off"
              spellCheck={false}
              required
              value={key}
              placeholder="lk_mgt_…"
              onChange={({ target }) => setKey(target.value)}
            />
          )}
        </Field>
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
    </main>
  );
}

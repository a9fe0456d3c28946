import { useId } from "react";
import { useAccess } from "../access/access.js";
import { Field } from "../ui/field.js";
import { KeyField } from "../ui/key-field.js";
import { ApplicationSearch } from "./application-search.js";

/** By what the subject of a question is known. */
export interface ChosenSubject {
  readonly by: "key" | "application" | "session" | "me";
  readonly key: string;
  readonly applicationId: string;
  readonly sessionId: string;
}

const ways: readonly {
  readonly by: ChosenSubject["by"];
  readonly label: string;
  readonly needs?: string;
}[] = [
  { by: "application", label: "An application", needs: "application:read" },
  { by: "key", label: "A key", needs: "access:check" },
  { by: "session", label: "A session", needs: "session:read" },
  { by: "me", label: "My own key" },
];

interface SubjectChoiceProps {
  readonly chosen: ChosenSubject;
  readonly keyErrors: readonly string[] | undefined;
  onChange(chosen: ChosenSubject): void;
}

/** Whom a question is about. */
export function SubjectChoice({ chosen, keyErrors, onChange }: SubjectChoiceProps) {
  const { may } = useAccess();
  const name = useId();
  const change = (fields: Partial<ChosenSubject>) => onChange({ ...chosen, ...fields });
  return (
    <>
      <fieldset className="why-ways">
        <legend>Who asks</legend>
        {ways
          .filter(({ needs }) => needs === undefined || may(needs))
          .map(({ by, label }) => (
            <label key={by} className="check">
              <input
                type="radio"
                name={name}
                checked={by === chosen.by}
                onChange={() => change({ by })}
              />
              {label}
            </label>
          ))}
      </fieldset>
      {chosen.by === "application" && (
        <ApplicationSearch
          chosenId={chosen.applicationId}
          onChoose={(applicationId) => change({ applicationId })}
        />
      )}
      {chosen.by === "key" && (
        <KeyField
          label="Key"
          hint="It stays in this page, and is sent to this service only."
          placeholder="lk_…"
          errors={chosen.key === "" ? [] : keyErrors}
          value={chosen.key}
          onChange={(key) => change({ key })}
        />
      )}
      {chosen.by === "session" && (
        <Field label="Session id">
          {(control) => (
            <input
              {...control}
              autoComplete="off"
              spellCheck={false}
              value={chosen.sessionId}
              onChange={({ target }) => change({ sessionId: target.value.trim() })}
            />
          )}
        </Field>
      )}
    </>
  );
}

/** What to begin with: what the address of the page names, or what the key can see. */
export function firstChoice(
  named: URLSearchParams,
  may: (permission: string) => boolean,
): ChosenSubject {
  const applicationId = named.get("application") ?? "";
  const sessionId = named.get("session") ?? "";
  const possible = ways.find(({ needs }) => needs === undefined || may(needs))?.by ?? "me";
  const by = sessionId !== "" ? "session" : applicationId !== "" ? "application" : possible;
  return { by, key: "", applicationId, sessionId };
}

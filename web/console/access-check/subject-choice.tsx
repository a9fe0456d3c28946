import { isId } from "../../../src/lib/uuid-text.js";
import { ApplicationField } from "../applications/application-field.js";
import { useSignedInKey } from "../sign-in/signed-in-key.js";
import { KeyField, TextField } from "../ui/fields.js";
import { RadioGroup } from "../ui/radio-group.js";

export interface ChosenSubject {
  readonly by: "key" | "application" | "session" | "me";
  readonly key: string;
  readonly applicationId: string;
  readonly sessionId: string;
}

const subjectKinds: readonly {
  readonly value: ChosenSubject["by"];
  readonly label: string;
  readonly needs?: string;
}[] = [
  { value: "application", label: "An application", needs: "application:read" },
  { value: "key", label: "A key", needs: "access:check" },
  { value: "session", label: "A session", needs: "session:read" },
  { value: "me", label: "My own key" },
];

interface SubjectChoiceProps {
  readonly chosen: ChosenSubject;
  readonly keyErrors: readonly string[] | undefined;
  onChange(chosen: ChosenSubject): void;
}

export function SubjectChoice({ chosen, keyErrors, onChange }: SubjectChoiceProps) {
  const { may } = useSignedInKey();
  const change = (fields: Partial<ChosenSubject>) => onChange({ ...chosen, ...fields });
  return (
    <>
      <RadioGroup
        legend="Principal"
        variant="inline"
        options={subjectKinds.filter(({ needs }) => needs === undefined || may(needs))}
        value={chosen.by}
        onChange={(by) => change({ by })}
      />
      {chosen.by === "application" && (
        <ApplicationField
          label="Application"
          value={chosen.applicationId}
          onChange={(applicationId) => change({ applicationId })}
        />
      )}
      {chosen.by === "key" && (
        <KeyField
          label="Key"
          hint="Stays in this page and is sent only to this service."
          placeholder="lk_…"
          errors={chosen.key === "" ? [] : keyErrors}
          value={chosen.key}
          onChange={(key) => change({ key })}
        />
      )}
      {chosen.by === "session" && (
        <TextField
          label="Session ID"
          value={chosen.sessionId}
          onChange={(sessionId) => change({ sessionId: sessionId.trim() })}
        />
      )}
    </>
  );
}

/** The subject in the query string, or the first one that the key may read. */
export function subjectFromParams(
  params: URLSearchParams,
  may: (permission: string) => boolean,
): ChosenSubject {
  const applicationId = params.get("application") ?? "";
  const sessionId = params.get("session") ?? "";
  const possible = subjectKinds.filter(({ needs }) => needs === undefined || may(needs));
  const named = possible.find(({ value }) => value === params.get("principal")) ?? possible[0];
  const by =
    sessionId !== "" ? "session" : applicationId !== "" ? "application" : (named?.value ?? "me");
  return { by, key: "", applicationId, sessionId };
}

/** The subject for the query string. Of a key, only that it is one. */
export function subjectToParams({ by, applicationId, sessionId }: ChosenSubject): string[][] {
  switch (by) {
    case "application":
      return isId(applicationId) ? [["application", applicationId]] : [];
    case "session":
      return isId(sessionId) ? [["session", sessionId]] : [["principal", by]];
    default:
      return [["principal", by]];
  }
}

import { isId } from "../../../src/lib/uuid-text.js";
import { ApplicationField } from "../applications/application-field.js";
import { useSignedInKey } from "../sign-in/signed-in-key.js";
import { KeyField, TextField } from "../ui/fields.js";
import { RadioGroup } from "../ui/radio-group.js";

export interface ChosenPrincipal {
  readonly by: "key" | "application" | "session" | "me";
  readonly key: string;
  readonly applicationId: string;
  readonly sessionId: string;
}

const principalOptions: readonly {
  readonly value: ChosenPrincipal["by"];
  readonly label: string;
  readonly needs?: string;
}[] = [
  { value: "application", label: "An application", needs: "application:read" },
  { value: "key", label: "A key", needs: "access:check" },
  { value: "session", label: "A session", needs: "session:read" },
  { value: "me", label: "My own key" },
];

interface PrincipalChoiceProps {
  readonly chosen: ChosenPrincipal;
  readonly keyErrors: readonly string[] | undefined;
  onChange(chosen: ChosenPrincipal): void;
}

export function PrincipalChoice({ chosen, keyErrors, onChange }: PrincipalChoiceProps) {
  const { may } = useSignedInKey();
  const change = (fields: Partial<ChosenPrincipal>) => onChange({ ...chosen, ...fields });
  return (
    <>
      <RadioGroup
        legend="Principal"
        variant="inline"
        options={principalOptions.filter(({ needs }) => needs === undefined || may(needs))}
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

/** The principal in the query string, or the first one that the key may read. */
export function principalFromParams(
  params: URLSearchParams,
  may: (permission: string) => boolean,
): ChosenPrincipal {
  const applicationId = params.get("application") ?? "";
  const sessionId = params.get("session") ?? "";
  const possible = principalOptions.filter(({ needs }) => needs === undefined || may(needs));
  const named = possible.find(({ value }) => value === params.get("principal")) ?? possible[0];
  const by =
    sessionId !== "" ? "session" : applicationId !== "" ? "application" : (named?.value ?? "me");
  return { by, key: "", applicationId, sessionId };
}

/** The principal for the query string. Of a key, only that it is one. */
export function principalToParams({ by, applicationId, sessionId }: ChosenPrincipal): string[][] {
  switch (by) {
    case "application":
      return isId(applicationId) ? [["application", applicationId]] : [];
    case "session":
      return isId(sessionId) ? [["session", sessionId]] : [["principal", by]];
    default:
      return [["principal", by]];
  }
}

import { useQuery } from "@connectrpc/connect-query";
import { keepPreviousData } from "@tanstack/react-query";
import { useId, useState } from "react";
import {
  ApplicationService,
  ListApplicationsRequestSchema,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import { maxLengthOf } from "../../../src/contract/fields.js";
import { useAccess } from "../sign-in/signed-in-key.js";
import { Badge } from "../ui/display.js";
import { Field, KeyField } from "../ui/fields.js";
import { useDebounced } from "../ui/hooks.js";
import { Problem } from "../ui/page.js";

export interface ChosenSubject {
  readonly by: "key" | "application" | "session" | "me";
  readonly key: string;
  readonly applicationId: string;
  readonly sessionId: string;
}

const subjectKinds: readonly {
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

export function SubjectChoice({ chosen, keyErrors, onChange }: SubjectChoiceProps) {
  const { may } = useAccess();
  const name = useId();
  const change = (fields: Partial<ChosenSubject>) => onChange({ ...chosen, ...fields });
  return (
    <>
      <fieldset className="why-subject-kinds">
        <legend>Subject</legend>
        {subjectKinds
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
          hint="Stays in this page and is sent only to this service."
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

/** The subject in the query string, or the first one that the key may read. */
export function firstChoice(
  params: URLSearchParams,
  may: (permission: string) => boolean,
): ChosenSubject {
  const applicationId = params.get("application") ?? "";
  const sessionId = params.get("session") ?? "";
  const possible = subjectKinds.find(({ needs }) => needs === undefined || may(needs))?.by ?? "me";
  const by = sessionId !== "" ? "session" : applicationId !== "" ? "application" : possible;
  return { by, key: "", applicationId, sessionId };
}

interface ApplicationSearchProps {
  readonly chosenId: string | undefined;
  onChoose(id: string): void;
}

const maxResults = 8;

const maxSearch = maxLengthOf(ListApplicationsRequestSchema.field.q);

/** Searches applications as the list of applications does. */
function ApplicationSearch({ chosenId, onChoose }: ApplicationSearchProps) {
  const [text, setText] = useState("");
  const q = useDebounced(text.trim());
  const { data, error } = useQuery(
    ApplicationService.method.listApplications,
    { size: maxResults, ...(q !== "" && { q }) },
    // The text may be a key, which must not stay in the cache.
    { placeholderData: keepPreviousData, gcTime: 0 },
  );
  return (
    <>
      <Field label="Application" hint="Search by name, description, external ID or ID.">
        {(control) => (
          <input
            {...control}
            type="search"
            autoComplete="off"
            spellCheck={false}
            maxLength={maxSearch}
            value={text}
            onChange={({ target }) => setText(target.value)}
          />
        )}
      </Field>
      <Problem error={error} />
      <ul className="why-found" aria-label="Applications found">
        {data?.data.map(({ id, name, type }) => (
          <li key={id}>
            <button type="button" aria-pressed={id === chosenId} onClick={() => onChoose(id)}>
              <span>{name}</span>
              <Badge>{type}</Badge>
            </button>
          </li>
        ))}
      </ul>
      {data?.data.length === 0 && <p className="muted">No applications match.</p>}
    </>
  );
}

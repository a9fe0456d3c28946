import { useQuery } from "@connectrpc/connect-query";
import { useEffect, useId, useState } from "react";
import { ApplicationService } from "../../../gen/latchkey/v1/application_service_pb.js";
import { useAccess } from "../sign-in/signed-in-key.js";
import { Field } from "../ui/fields.js";
import { useDebounced } from "../ui/hooks.js";
import { isUuid, shortId, useApplicationName } from "./application-display.js";

interface ApplicationFieldProps {
  readonly label: string;
  /** The id of the chosen application, or empty. */
  readonly value: string;
  readonly hint?: string;
  /** Suggests only applications of this type. */
  readonly type?: string;
  onChange(id: string): void;
}

const maxSuggestions = 10;

/** Selects an application by name or id. */
export function ApplicationField({ label, value, hint, type, onChange }: ApplicationFieldProps) {
  const name = useApplicationName(value === "" ? undefined : value);
  const chosen = value === "" ? "" : name ? labelOf({ id: value, name }) : value;
  const [text, setText] = useState(chosen);
  const listId = useId();
  const suggestions = useSuggestions(text === chosen ? "" : text, type);
  useEffect(() => setText(chosen), [chosen]);

  function select(typed: string): void {
    setText(typed);
    const match = suggestions.find((application) => labelOf(application) === typed);
    const id = match?.id ?? typed.trim();
    if (id === "" || isUuid(id)) {
      onChange(id);
    }
  }

  const isOpen = text !== chosen && text.trim() !== "";
  return (
    <Field label={label} hint={isOpen ? "Choose an application from the list." : hint}>
      {(props) => (
        <>
          <input
            {...props}
            type="search"
            autoComplete="off"
            spellCheck={false}
            list={listId}
            placeholder="Name or ID"
            value={text}
            onChange={({ target }) => select(target.value)}
          />
          <datalist id={listId}>
            {suggestions.map((application) => (
              <option key={application.id} value={labelOf(application)} />
            ))}
          </datalist>
        </>
      )}
    </Field>
  );
}

function labelOf({ id, name }: { readonly id: string; readonly name: string }): string {
  return `${name} (${shortId(id)})`;
}

function useSuggestions(text: string, type: string | undefined) {
  const { may } = useAccess();
  const namePrefix = useDebounced(text.replace(/ \(….*$/, "").trim());
  const { data } = useQuery(
    ApplicationService.method.listApplications,
    { size: maxSuggestions, ...(namePrefix !== "" && { namePrefix }), ...(type && { type }) },
    { enabled: may("application:read"), staleTime: 30_000, placeholderData: (before) => before },
  );
  return data?.data ?? [];
}

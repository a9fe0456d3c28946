import { useQuery } from "@connectrpc/connect-query";
import { keepPreviousData } from "@tanstack/react-query";
import { useEffect, useMemo, useState } from "react";
import { ApplicationService } from "../../../gen/latchkey/v1/application_service_pb.js";
import { isId } from "../../../src/lib/uuid-text.js";
import { useSignedInKey } from "../sign-in/signed-in-key.js";
import { Combobox } from "../ui/combobox.js";
import { useDebounced } from "../ui/hooks.js";
import { shortId } from "./application-display.js";
import { useApplicationName } from "./application-names.js";

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

/** Selects an application by a part of its name or by its id. */
export function ApplicationField({ label, value, hint, type, onChange }: ApplicationFieldProps) {
  const name = useApplicationName(value === "" ? undefined : value);
  const chosen = value === "" ? "" : (name ?? value);
  // The name of the chosen application may load while the user types.
  const [typed, setTyped] = useState<string>();
  const text = typed ?? chosen;
  const isTyping = text !== chosen && text.trim() !== "";
  const suggestions = useSuggestions(isTyping ? text : "", type);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another choice replaces the text.
  useEffect(() => setTyped(undefined), [value]);

  function write(input: string): void {
    setTyped(input);
    const id = input.trim();
    if (id === "" || isId(id)) {
      onChange(id);
    }
  }

  const message = isTyping ? "Choose an application from the list." : hint;
  return (
    <Combobox
      label={label}
      {...(message !== undefined && { hint: message })}
      placeholder="Name or ID"
      suggestions={suggestions}
      text={text}
      onText={write}
      onChoose={(id) => {
        setTyped(undefined);
        onChange(id);
      }}
    />
  );
}

function useSuggestions(text: string, type: string | undefined) {
  const { may } = useSignedInKey();
  const q = useDebounced(text.trim());
  const { data } = useQuery(
    ApplicationService.method.listApplications,
    { size: maxSuggestions, ...(q !== "" && { q }), ...(type && { type }) },
    {
      enabled: may("application:read"),
      // The text may be a key, which must not stay in the cache.
      gcTime: 0,
      placeholderData: keepPreviousData,
    },
  );
  return useMemo(
    () =>
      (data?.data ?? []).map(({ id, name }) => ({
        value: id,
        label: name,
        details: (
          <>
            {name} <code className="muted">{shortId(id)}</code>
          </>
        ),
      })),
    [data],
  );
}

import { useEffect, useState } from "react";
import { problemOf } from "../../../src/contract/problem-report.js";
import { isId } from "../../../src/lib/uuid-text.js";
import { Combobox } from "../ui/combobox.js";
import { shortId } from "./application-display.js";
import { useApplicationName } from "./application-names.js";
import { useApplicationSearch } from "./application-search.js";

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
  const found = useApplicationSearch(isTyping ? text : "", { size: maxSuggestions, type });
  // biome-ignore lint/correctness/useExhaustiveDependencies: another choice replaces the text.
  useEffect(() => setTyped(undefined), [value]);

  function write(input: string): void {
    setTyped(input);
    const id = input.trim();
    if (id === "" || isId(id)) {
      onChange(id);
    }
  }

  const message = !isTyping
    ? hint
    : found.isContinuing
      ? "Searching…"
      : "Choose an application from the list.";
  return (
    <Combobox
      label={label}
      {...(message !== undefined && { hint: message })}
      errors={found.error === undefined ? [] : [problemOf(found.error).detail]}
      placeholder="Name or ID"
      suggestions={found.applications.map(({ id, name }) => ({
        value: id,
        label: name,
        details: (
          <>
            {name} <code className="muted">{shortId(id)}</code>
          </>
        ),
      }))}
      text={text}
      onText={write}
      onChoose={(id) => {
        setTyped(undefined);
        onChange(id);
      }}
    />
  );
}

import { X } from "lucide-react";
import { type ClipboardEvent, type KeyboardEvent, useMemo, useRef, useState } from "react";
import { Combobox } from "../ui/combobox.js";
import type { FieldText } from "../ui/fields.js";
import { toSuggestion, useKnownPermissions } from "./known-permissions.js";
import type { RuleKind } from "./rule-list.js";

interface PermissionInputProps extends FieldText {
  /** Suggests the permissions that it may hold. Other names can be entered too. */
  readonly kind: RuleKind;
  readonly value: readonly string[];
  onChange(names: string[]): void;
}

/** A combobox for permission names. Accepts pasted lists. */
export function PermissionInput({ kind, value, onChange, ...texts }: PermissionInputProps) {
  const [draft, setDraft] = useState("");
  const [announcement, setAnnouncement] = useState("");
  const input = useRef<HTMLInputElement>(null);
  const known = useKnownPermissions();
  const unknown = value.filter((name) => known && !known.some((one) => one.name === name));
  const suggestions = useMemo(() => {
    const search = draft.trim().toLowerCase();
    // Private applications authorize sessions.
    const type = kind === "session" ? "private" : kind;
    return (known ?? [])
      .filter(
        ({ name, allows, types }) =>
          types.includes(type) &&
          !value.includes(name) &&
          [name, allows.toLowerCase()].some((text) => text.includes(search)),
      )
      .map(toSuggestion);
  }, [known, kind, value, draft]);

  function write(text: string): void {
    if (separator.test(text)) {
      add(text);
    } else {
      setDraft(text);
    }
  }

  function add(text: string): void {
    const added = [...new Set(splitNames(text))].filter((name) => !value.includes(name));
    setDraft("");
    if (added.length > 0) {
      onChange([...value, ...added]);
      setAnnouncement(`Added ${added.join(", ")}`);
    }
  }

  function remove(name: string): void {
    onChange(value.filter((other) => other !== name));
    setAnnouncement(`Removed ${name}`);
    // The pressed button is gone.
    input.current?.focus();
  }

  function onKeyDown(event: KeyboardEvent): void {
    const last = value.at(-1);
    if (event.key === "Enter" && draft !== "") {
      event.preventDefault();
      add(draft);
    } else if (event.key === "Backspace" && draft === "" && last !== undefined) {
      event.preventDefault();
      remove(last);
    }
  }

  function paste(event: ClipboardEvent): void {
    const text = event.clipboardData.getData("text");
    if (splitNames(text).length > 1) {
      event.preventDefault();
      add(`${draft}${text}`);
    }
  }

  return (
    <div className="names">
      <Combobox
        {...texts}
        placeholder="token:read"
        suggestions={suggestions}
        text={draft}
        onText={write}
        onChoose={add}
        inputProps={{ ref: input, onKeyDown, onPaste: paste, onBlur: () => add(draft) }}
      >
        {value.length > 0 && (
          <ul className="chips">
            {value.map((name) => (
              <li key={name} data-unknown={unknown.includes(name)}>
                <code>{name}</code>
                <button type="button" aria-label={`Remove ${name}`} onClick={() => remove(name)}>
                  <X size={12} aria-hidden />
                </button>
              </li>
            ))}
          </ul>
        )}
      </Combobox>
      {unknown.length > 0 && (texts.errors ?? []).length === 0 && (
        <p role="status" className="names-warning">
          Latchkey does not know {unknown.join(", ")}. Check the spelling. Permissions of your own
          services are fine.
        </p>
      )}
      <span role="status" className="visually-hidden">
        {announcement}
      </span>
    </div>
  );
}

const separator = /[\s,;]+/;

function splitNames(text: string): string[] {
  return text.split(separator).filter((name) => name !== "");
}

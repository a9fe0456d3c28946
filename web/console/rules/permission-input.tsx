import { useQuery } from "@connectrpc/connect-query";
import { X } from "lucide-react";
import { type ClipboardEvent, type KeyboardEvent, useId, useMemo, useRef, useState } from "react";
import { AccessService, type KnownPermission } from "../../../gen/latchkey/v1/access_service_pb.js";
import type { Suggestion } from "../ui/combobox.js";
import { type ControlProps, Field } from "../ui/fields.js";
import type { RuleKind } from "./rule-list.js";
import "./rules.css";

interface PermissionInputProps {
  readonly label: string;
  /** Suggests the permissions that it may hold. Other names can be entered too. */
  readonly kind: RuleKind;
  readonly value: readonly string[];
  onChange(names: string[]): void;
  readonly errors?: readonly string[] | undefined;
  readonly hint?: string;
}

/** A combobox for permission names. Accepts pasted lists. */
export function PermissionInput({ label, hint, errors, ...rest }: PermissionInputProps) {
  return (
    <Field label={label} hint={hint} errors={errors}>
      {(control) => <Names control={control} {...rest} />}
    </Field>
  );
}

interface NamesProps extends Pick<PermissionInputProps, "kind" | "value" | "onChange"> {
  readonly control: ControlProps;
}

function Names({ control, kind, value, onChange }: NamesProps) {
  const [draft, setDraft] = useState("");
  const [isOpen, setIsOpen] = useState(false);
  const [active, setActive] = useState<string>();
  const [announcement, setAnnouncement] = useState("");
  const input = useRef<HTMLInputElement>(null);
  const listId = useId();
  const search = draft.trim().toLowerCase();
  const known = useKnownPermissions();
  // Private applications authorize sessions.
  const type = kind === "session" ? "private" : kind;
  const suggestions = isOpen
    ? (known ?? []).filter(
        ({ name, allows, types }) =>
          types.includes(type) &&
          !value.includes(name) &&
          [name, allows.toLowerCase()].some((text) => text.includes(search)),
      )
    : [];
  const matches = suggestions.map(({ name }) => name);
  const unknown = value.filter((name) => known && !known.some((one) => one.name === name));

  function write(text: string): void {
    if (separator.test(text)) {
      add(text);
      return;
    }
    setDraft(text);
    setActive(undefined);
    setIsOpen(true);
  }

  function add(text: string): void {
    const added = [...new Set(splitNames(text))].filter((name) => !value.includes(name));
    setDraft("");
    setActive(undefined);
    // The list would cover the fields below.
    setIsOpen(false);
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

  function move(step: 1 | -1): void {
    setIsOpen(true);
    const before = active === undefined ? -1 : matches.indexOf(active);
    const next = before === -1 && step === -1 ? matches.length - 1 : before + step;
    setActive(matches[(next + matches.length) % matches.length]);
  }

  function onKeyDown(event: KeyboardEvent): void {
    const isHandled = handleKey(event.key);
    if (isHandled) {
      event.preventDefault();
    }
  }

  /** Returns whether the key was handled. */
  function handleKey(key: string): boolean {
    switch (key) {
      case "ArrowDown":
      case "ArrowUp":
        move(key === "ArrowDown" ? 1 : -1);
        return true;
      case "Enter":
        add(active ?? draft);
        return draft !== "" || active !== undefined;
      case "Escape":
        setIsOpen(false);
        return isOpen;
      case "Backspace": {
        const last = value.at(-1);
        if (draft === "" && last !== undefined) {
          remove(last);
        }
        return draft === "";
      }
      default:
        return false;
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
      <div className="names-entry">
        <input
          {...control}
          ref={input}
          role="combobox"
          aria-autocomplete="list"
          aria-expanded={matches.length > 0}
          aria-controls={matches.length > 0 ? listId : undefined}
          aria-activedescendant={active === undefined ? undefined : `${listId}-${active}`}
          autoComplete="off"
          autoCapitalize="none"
          spellCheck={false}
          placeholder="token:read"
          value={draft}
          onChange={({ target }) => write(target.value)}
          onKeyDown={onKeyDown}
          onPaste={paste}
          onClick={() => setIsOpen(true)}
          onBlur={() => {
            setIsOpen(false);
            add(draft);
          }}
        />
        {matches.length > 0 && (
          <div id={listId} role="listbox" aria-label="Suggestions" className="names-suggestions">
            {suggestions.map(({ name, allows }) => (
              <div
                key={name}
                id={`${listId}-${name}`}
                role="option"
                tabIndex={-1}
                aria-selected={name === active}
                ref={
                  name === active ? (option) => option?.scrollIntoView({ block: "nearest" }) : null
                }
                // A click would blur the input and close the list.
                onMouseDown={(event) => {
                  event.preventDefault();
                  add(name);
                }}
              >
                <code>{name}</code>
                <span className="hint">{allows}</span>
              </div>
            ))}
          </div>
        )}
      </div>
      {unknown.length > 0 && (
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

/** The permissions that the service knows, once they are loaded. */
export function useKnownPermissions(): readonly KnownPermission[] | undefined {
  const { data } = useQuery(AccessService.method.listPermissions, {}, { staleTime: 60_000 });
  return data?.data;
}

/** The known permissions that contain a text. All if the text is one of them. */
export function usePermissionSuggestions(text: string): readonly Suggestion[] {
  const known = useKnownPermissions();
  return useMemo(() => {
    const isChosen = known?.some(({ name }) => name === text);
    return (known ?? [])
      .filter(({ name }) => isChosen || name.includes(text.toLowerCase()))
      .map(({ name, allows }) => ({
        value: name,
        label: name,
        details: (
          <span className="permission-option">
            <code>{name}</code>
            <span className="hint">{allows}</span>
          </span>
        ),
      }));
  }, [known, text]);
}

const separator = /[\s,;]+/;

function splitNames(text: string): string[] {
  return text.split(separator).filter((name) => name !== "");
}

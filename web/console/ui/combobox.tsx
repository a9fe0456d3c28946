import { autoUpdate, flip, offset, shift, size, useFloating } from "@floating-ui/react-dom";
import { X } from "lucide-react";
import {
  type ComponentProps,
  type KeyboardEvent,
  type ReactNode,
  useEffect,
  useId,
  useRef,
  useState,
} from "react";
import { Field, type FieldText } from "./fields.js";

export interface Suggestion {
  readonly value: string;
  /** The text in the input once it is chosen. */
  readonly label: string;
  /** Shown in the list instead of the label. */
  readonly details?: ReactNode;
}

interface ComboboxProps extends FieldText {
  readonly placeholder?: string;
  /** The suggestions for the text, found by the caller. */
  readonly suggestions: readonly Suggestion[];
  readonly text: string;
  onText(text: string): void;
  /** Called with the value of a suggestion, or with an empty string when it is cleared. */
  onChoose(value: string): void;
  /** `onKeyDown` is not called for the keys that the list handles. */
  readonly inputProps?: Pick<ComponentProps<"input">, "ref" | "onKeyDown" | "onPaste" | "onBlur">;
  /** Shown above the input. */
  readonly children?: ReactNode;
}

/**
 * A text input with suggestions. The caller searches and keeps the text. Not Ark's combobox, which
 * ignores input after its list was closed from outside while the input keeps the focus.
 */
export function Combobox(props: ComboboxProps) {
  const { label, hint, errors, placeholder, suggestions, text, onText, onChoose } = props;
  const { inputProps, children } = props;
  const listId = useId();
  // The list closes if the caller changes the text.
  const [openFor, setOpenFor] = useState<string>();
  const [active, setActive] = useState<string>();
  const isOpen = openFor === text && suggestions.length > 0;
  const position = suggestions.findIndex(({ value }) => isOpen && value === active);
  const { refs, floatingStyles } = useFloating({ ...listPosition, open: isOpen });

  function write(typed: string): void {
    setActive(undefined);
    // All suggestions would cover the fields below.
    setOpenFor(typed === "" ? undefined : typed);
    onText(typed);
  }

  function choose(value: string): void {
    setActive(undefined);
    setOpenFor(undefined);
    onChoose(value);
  }

  function move(step: 1 | -1): void {
    setOpenFor(text);
    const from = position === -1 && step === -1 ? 0 : position;
    setActive(suggestions.at((from + step) % suggestions.length)?.value);
  }

  /** Returns whether the list handles the key. */
  function handleKey(key: string): boolean {
    switch (key) {
      case "ArrowDown":
      case "ArrowUp":
        move(key === "ArrowDown" ? 1 : -1);
        return true;
      case "Enter":
        if (position !== -1 && active !== undefined) {
          choose(active);
        }
        return position !== -1;
      case "Tab":
        if (position !== -1 && active !== undefined) {
          choose(active);
        }
        return false;
      case "Escape":
        setOpenFor(undefined);
        return isOpen;
      default:
        return false;
    }
  }

  function onKeyDown(event: KeyboardEvent<HTMLInputElement>): void {
    if (!event.nativeEvent.isComposing && handleKey(event.key)) {
      event.preventDefault();
      event.stopPropagation();
    } else {
      inputProps?.onKeyDown?.(event);
    }
  }

  return (
    <Field label={label} hint={hint} errors={errors}>
      {(control) => (
        <>
          {children}
          <div className="combobox" ref={refs.setReference}>
            <input
              {...control}
              {...inputProps}
              role="combobox"
              aria-autocomplete="list"
              aria-expanded={isOpen}
              aria-controls={isOpen ? listId : undefined}
              aria-activedescendant={position === -1 ? undefined : `${listId}-${position}`}
              autoComplete="off"
              autoCapitalize="none"
              spellCheck={false}
              placeholder={placeholder}
              value={text}
              onChange={({ target }) => write(target.value)}
              onClick={() => setOpenFor(text)}
              onKeyDown={onKeyDown}
              onBlur={(event) => {
                setOpenFor(undefined);
                inputProps?.onBlur?.(event);
              }}
            />
            {text !== "" && (
              <button
                type="button"
                className="icon-button"
                aria-label={`Clear ${label}`}
                // Keeps the focus in the input.
                onMouseDown={(event) => event.preventDefault()}
                onClick={() => {
                  write("");
                  choose("");
                }}
              >
                <X size={14} aria-hidden />
              </button>
            )}
            {isOpen && (
              <div
                ref={refs.setFloating}
                id={listId}
                role="listbox"
                // A list that scrolls would be a stop of the Tab key.
                tabIndex={-1}
                aria-label={`Suggestions for ${label}`}
                className="menu suggestions"
                style={floatingStyles}
                onMouseDown={(event) => event.preventDefault()}
              >
                {suggestions.map((suggestion, index) => (
                  <Option
                    key={suggestion.value}
                    id={`${listId}-${index}`}
                    isActive={index === position}
                    onClick={() => choose(suggestion.value)}
                  >
                    {suggestion.details ?? suggestion.label}
                  </Option>
                ))}
              </div>
            )}
          </div>
        </>
      )}
    </Field>
  );
}

interface OptionProps {
  readonly id: string;
  readonly isActive: boolean;
  readonly children: ReactNode;
  onClick(): void;
}

function Option({ id, isActive, children, onClick }: OptionProps) {
  const option = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (isActive) {
      option.current?.scrollIntoView({ block: "nearest" });
    }
  }, [isActive]);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the input handles the keys.
    <div
      ref={option}
      id={id}
      role="option"
      tabIndex={-1}
      aria-selected={isActive}
      data-highlighted={isActive || undefined}
      className="menu-item"
      onClick={onClick}
    >
      {children}
    </div>
  );
}

/** Below the input or, where there is more space, above it. Scrolling containers do not clip it. */
const listPosition: Parameters<typeof useFloating>[0] = {
  placement: "bottom-start",
  strategy: "fixed",
  whileElementsMounted: autoUpdate,
  middleware: [
    offset(4),
    flip(),
    shift({ padding: 8 }),
    size({
      apply({ availableHeight, elements, rects }) {
        elements.floating.style.setProperty("--available-height", `${availableHeight}px`);
        elements.floating.style.setProperty("--reference-width", `${rects.reference.width}px`);
      },
    }),
  ],
};

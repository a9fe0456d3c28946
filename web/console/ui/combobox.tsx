import { Combobox as Ark, createListCollection } from "@ark-ui/react/combobox";
import { X } from "lucide-react";
import { type ComponentProps, type ReactNode, useEffect, useId, useMemo, useState } from "react";
import { FieldMessages, type FieldText } from "./fields.js";

export interface Suggestion {
  readonly value: string;
  /** The text in the input once it is chosen. */
  readonly label: string;
  /** What the list shows, if it is more than the label. */
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
  readonly inputProps?: ComponentProps<typeof Ark.Input>;
  /** Shown above the input. */
  readonly children?: ReactNode;
}

/** A text input with suggestions. The caller searches and keeps the text. */
export function Combobox(props: ComboboxProps) {
  const { label, hint, errors, placeholder, suggestions, text, onText, onChoose } = props;
  const { inputProps, children } = props;
  const messages = useId();
  const [isOpen, setIsOpen] = useState(false);
  useEffect(() => {
    // The list would cover the fields below.
    if (text === "") {
      setIsOpen(false);
    }
  }, [text]);
  const collection = useMemo(
    () => createListCollection<Suggestion>({ items: [...suggestions] }),
    [suggestions],
  );
  return (
    <Ark.Root
      className="field"
      collection={collection}
      inputValue={text}
      value={[]}
      onInputValueChange={({ inputValue, reason }) => {
        if (reason === "input-change" || reason === "clear-trigger") {
          onText(inputValue);
        }
      }}
      onValueChange={({ value }) => onChoose(value[0] ?? "")}
      selectionBehavior="preserve"
      allowCustomValue
      open={isOpen}
      onOpenChange={({ open }) => setIsOpen(open)}
      openOnClick
      invalid={(errors ?? []).length > 0}
      {...(placeholder !== undefined && { placeholder })}
      positioning={positioning}
      lazyMount
      unmountOnExit
    >
      <Ark.Label>{label}</Ark.Label>
      {children}
      <Ark.Control className="combobox">
        <Ark.Input
          {...inputProps}
          autoComplete="off"
          autoCapitalize="none"
          spellCheck={false}
          aria-describedby={messages}
        />
        {text !== "" && (
          <button
            type="button"
            className="icon-button"
            aria-label={`Clear ${label}`}
            // Keeps the focus in the input.
            onMouseDown={(event) => event.preventDefault()}
            onClick={() => {
              onText("");
              onChoose("");
            }}
          >
            <X size={14} aria-hidden />
          </button>
        )}
      </Ark.Control>
      <FieldMessages id={messages} hint={hint} errors={errors} />
      {suggestions.length > 0 && (
        <Ark.Positioner>
          <Ark.Content className="menu suggestions">
            {suggestions.map((suggestion) => (
              <Ark.Item key={suggestion.value} item={suggestion} className="menu-item">
                <Ark.ItemText>{suggestion.details ?? suggestion.label}</Ark.ItemText>
              </Ark.Item>
            ))}
          </Ark.Content>
        </Ark.Positioner>
      )}
    </Ark.Root>
  );
}

const positioning = {
  placement: "bottom-start",
  gutter: 4,
  // Narrow fields have a wider list.
  sameWidth: false,
  // Scrolling containers do not clip it.
  strategy: "fixed",
} as const;

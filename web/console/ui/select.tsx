import { Portal } from "@ark-ui/react/portal";
import { Select as Ark, createListCollection } from "@ark-ui/react/select";
import { Check, ChevronsUpDown } from "lucide-react";
import { useId, useMemo } from "react";
import { FieldMessages, type FieldText } from "./fields.js";

export interface Option {
  readonly value: string;
  readonly label: string;
}

interface SelectProps extends FieldText {
  readonly options: readonly Option[];
  readonly value: string;
  onChange(value: string): void;
  /** Shows the label inside the control, for filter bars. */
  readonly isInline?: boolean;
}

/** A choice from a fixed list, with label, hint and errors. */
export function Select({ label, hint, errors, options, value, onChange, isInline }: SelectProps) {
  const messages = useId();
  const collection = useMemo(
    () => createListCollection<Option>({ items: [...options] }),
    [options],
  );
  return (
    <Ark.Root
      className="field"
      collection={collection}
      value={[value]}
      onValueChange={(changed) => onChange(changed.value[0] ?? "")}
      invalid={(errors ?? []).length > 0}
      positioning={positioning}
      lazyMount
      unmountOnExit
    >
      <Ark.Label className={isInline ? "visually-hidden" : undefined}>{label}</Ark.Label>
      <Ark.Control>
        <Ark.Trigger className="select" aria-describedby={messages}>
          {isInline && (
            <span className="muted" aria-hidden>
              {label}
            </span>
          )}
          <Ark.ValueText className="select-value" />
          <ChevronsUpDown size={14} className="select-icon" aria-hidden />
        </Ark.Trigger>
      </Ark.Control>
      <FieldMessages id={messages} label={label} hint={hint} errors={errors} />
      <Portal>
        <Ark.Positioner>
          <Ark.Content className="menu">
            {options.map((option) => (
              <Ark.Item key={option.value} item={option} className="menu-item">
                <Ark.ItemText>{option.label}</Ark.ItemText>
                <Ark.ItemIndicator className="menu-check">
                  <Check size={14} aria-hidden />
                </Ark.ItemIndicator>
              </Ark.Item>
            ))}
          </Ark.Content>
        </Ark.Positioner>
      </Portal>
    </Ark.Root>
  );
}

const positioning = { placement: "bottom-start", gutter: 4, sameWidth: true } as const;

import { Portal } from "@ark-ui/react/portal";
import { Select as Ark, createListCollection } from "@ark-ui/react/select";
import { Check, ChevronsUpDown } from "lucide-react";
import { useId, useMemo } from "react";
import { FieldMessages, type FieldText } from "./fields.js";

export interface Option {
  readonly value: string;
  readonly label: string;
}

interface ChoiceProps extends FieldText {
  readonly options: readonly Option[];
  /** Shows the label inside the control, for filter bars. */
  readonly isInline?: boolean;
}

interface SelectProps extends ChoiceProps {
  readonly value: string;
  onChange(value: string): void;
}

/** A choice from a fixed list, with label, hint and errors. */
export function Select({ value, onChange, ...rest }: SelectProps) {
  return <Choices {...rest} values={[value]} onChange={([chosen = ""]) => onChange(chosen)} />;
}

interface MultiSelectProps extends ChoiceProps {
  readonly values: readonly string[];
  /** Shown if nothing is chosen. */
  readonly placeholder: string;
  onChange(values: readonly string[]): void;
}

/** A choice of any number of values from a fixed list. */
export function MultiSelect(props: MultiSelectProps) {
  return <Choices {...props} isMultiple />;
}

interface ChoicesProps extends Omit<MultiSelectProps, "placeholder"> {
  readonly placeholder?: string;
  readonly isMultiple?: boolean;
}

function Choices(props: ChoicesProps) {
  const { label, hint, errors, options, values, onChange, isInline, isMultiple, placeholder } =
    props;
  const messages = useId();
  const collection = useMemo(
    () => createListCollection<Option>({ items: [...options] }),
    [options],
  );
  return (
    <Ark.Root
      className="field"
      collection={collection}
      multiple={isMultiple === true}
      value={[...values]}
      onValueChange={(changed) => onChange(changed.value)}
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
          <Ark.ValueText
            className="select-value"
            {...(placeholder !== undefined && { placeholder })}
          />
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

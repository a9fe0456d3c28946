import type { ReactNode } from "react";
import { ApplicationName } from "../applications/application-display.js";
import { lazyComponent } from "../ui/lazy.js";
import type { Option } from "../ui/select.js";
import type { ChangeOptions } from "./list-params.js";
import type { TextFilterOptions } from "./text-filter.js";

const Select = lazyComponent(async () => ({
  default: (await import("../ui/select.js")).Select,
}));
const MultiSelect = lazyComponent(async () => ({
  default: (await import("../ui/select.js")).MultiSelect,
}));
const TextFilter = lazyComponent(async () => ({
  default: (await import("./text-filter.js")).TextFilter,
}));
const ApplicationField = lazyComponent(async () => ({
  default: (await import("../applications/application-field.js")).ApplicationField,
}));

/** A filter of a list. An empty value means that it is not set. */
export interface Filter<Name extends string = string> {
  readonly name: Name;
  readonly label: string;
  field(props: FilterFieldProps): ReactNode;
  /** The value in words. */
  show?(value: string): ReactNode;
}

export interface FilterFieldProps {
  readonly label: string;
  readonly value: string;
  onChange(value: string, options?: ChangeOptions): void;
}

type NameAndLabel<Name extends string> = Pick<Filter<Name>, "name" | "label">;

interface ChoiceFilter<Name extends string> extends NameAndLabel<Name> {
  readonly options: readonly Option[];
  /** The option without a filter. */
  readonly any: string;
}

/** A filter with a fixed list of values. */
export function choiceFilter<Name extends string>({
  name,
  label,
  options,
  any,
}: ChoiceFilter<Name>): Filter<Name> {
  const all = [{ value: "", label: any }, ...options];
  return {
    name,
    label,
    field: (props) => <Select {...props} options={all} />,
    show: (value) => options.find((option) => option.value === value)?.label,
  };
}

/** A filter for several values of a list. Spaces separate the chosen values. */
export function choicesFilter<Name extends string>({
  name,
  label,
  options,
  any,
}: ChoiceFilter<Name>): Filter<Name> {
  return {
    name,
    label,
    field: ({ value, onChange, ...props }) => (
      <MultiSelect
        {...props}
        options={options}
        placeholder={any}
        values={valuesIn(value)}
        onChange={(values) => onChange(values.join(" "))}
      />
    ),
    show: (value) =>
      options
        .filter((option) => valuesIn(value).includes(option.value))
        .map((option) => option.label)
        .join(", "),
  };
}

/** The values of a {@link choicesFilter}. */
export function valuesIn(value: string): string[] {
  return value.split(" ").filter((one) => one !== "");
}

/** A filter by a typed text. */
export function textFilter<Name extends string>({
  name,
  label,
  ...rest
}: NameAndLabel<Name> & TextFilterOptions): Filter<Name> {
  return { name, label, field: (props) => <TextFilter {...props} {...rest} /> };
}

/** Options that read as their values. */
export function plainOptions(values: readonly string[]): readonly Option[] {
  return values.map((value) => ({ value, label: value }));
}

interface ApplicationFilter<Name extends string> extends NameAndLabel<Name> {
  /** Suggests only applications of this type. */
  readonly type?: string;
  readonly hint?: string;
}

/** A filter by the id of an application, which the user finds by its name. */
export function applicationFilter<Name extends string>({
  name,
  label,
  ...rest
}: ApplicationFilter<Name>): Filter<Name> {
  return {
    name,
    label,
    field: (props) => <ApplicationField {...props} {...rest} />,
    show: (id) => <ApplicationName id={id} />,
  };
}

import { useEffect, useRef, useState } from "react";
import { mayContainKey } from "../../../src/contract/key-text.js";
import { TextField } from "../ui/fields.js";
import { debounceMs } from "../ui/hooks.js";

export interface TextFilterOptions {
  readonly hint?: string;
  readonly placeholder?: string;
  readonly maxLength?: number | undefined;
  readonly isValid?: (text: string) => boolean;
  /** Says what a text must be if it is not valid, such as `must be an address`. */
  readonly rule?: string;
}

interface TextFilterProps extends TextFilterOptions {
  readonly label: string;
  readonly value: string;
  onChange(value: string): void;
}

/** A filter by a typed text. */
export function TextFilter(props: TextFilterProps) {
  const { label, value, onChange, isValid = () => true, rule, ...rest } = props;
  const [text, setText] = useState(value);
  const typed = text.trim();
  const isAccepted = typed === "" || isValid(typed) || rule === undefined;
  const errors = keyErrors(text) ?? (isAccepted ? undefined : [rule]);
  useCommit(typed, value, errors === undefined, onChange);
  return <TextField {...rest} label={label} errors={errors} value={text} onChange={setText} />;
}

/** Filters are in the URL, where a key must not be. */
export function keyErrors(text: string): readonly string[] | undefined {
  return mayContainKey(text)
    ? ["contains a key, and keys must not be in URLs: use the search field"]
    : undefined;
}

/** Applies a typed filter once the user pauses or closes the filters. */
export function useCommit(
  text: string,
  value: string,
  isValid: boolean,
  onChange: (value: string) => void,
): void {
  const pending = useRef<() => void>(undefined);
  useEffect(() => {
    const { pathname } = location;
    return () => {
      // The user may have left the page instead.
      if (location.pathname === pathname) {
        pending.current?.();
      }
    };
  }, []);
  // biome-ignore lint/correctness/useExhaustiveDependencies: only the typed text matters.
  useEffect(() => {
    if (text !== value && isValid) {
      const commit = () => {
        pending.current = undefined;
        onChange(text);
      };
      pending.current = commit;
      const timer = setTimeout(commit, debounceMs);
      return () => {
        clearTimeout(timer);
        pending.current = undefined;
      };
    }
  }, [text, isValid]);
}

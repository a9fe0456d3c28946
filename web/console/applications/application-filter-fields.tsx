import { create } from "@bufbuild/protobuf";
import { useEffect, useMemo, useRef, useState } from "react";
import { ListApplicationsRequestSchema } from "../../../gen/latchkey/v1/application_service_pb.js";
import { maxLengthOf } from "../../../src/contract/fields.js";
import { mayContainKey } from "../../../src/contract/key-text.js";
import type { FilterFieldProps } from "../lists/filters.js";
import { usePermissionSuggestions } from "../rules/known-permissions.js";
import { Combobox } from "../ui/combobox.js";
import { TextField } from "../ui/fields.js";
import { debounceMs } from "../ui/hooks.js";
import { useFieldErrors } from "../validation/field-errors.js";

const { externalId } = ListApplicationsRequestSchema.field;

/** Filters by a permission, with suggestions. */
export function PermissionFilter({ label, value, onChange }: FilterFieldProps) {
  const [text, setText] = useState(value);
  const suggestions = usePermissionSuggestions(text.trim());
  const request = useMemo(
    () =>
      create(ListApplicationsRequestSchema, text.trim() === "" ? {} : { permission: text.trim() }),
    [text],
  );
  const { permission: invalid } = useFieldErrors(ListApplicationsRequestSchema, request);
  const errors = keyErrors(text) ?? invalid;
  useCommit(text.trim(), value, errors === undefined, onChange);
  return (
    <Combobox
      label={label}
      placeholder="token:read"
      hint="Held directly or by a rule."
      errors={errors}
      suggestions={suggestions}
      text={text}
      onText={setText}
      onChoose={setText}
    />
  );
}

/** Filters by a whole external id. */
export function ExternalIdFilter({ label, value, onChange }: FilterFieldProps) {
  const [text, setText] = useState(value);
  const errors = keyErrors(text);
  useCommit(text.trim(), value, errors === undefined, onChange);
  return (
    <TextField
      label={label}
      hint="The whole ID in the other system."
      errors={errors}
      maxLength={maxLengthOf(externalId)}
      value={text}
      onChange={setText}
    />
  );
}

/** Filters are in the URL, where a key must not be. */
function keyErrors(text: string): readonly string[] | undefined {
  return mayContainKey(text)
    ? ["contains a key, and keys must not be in URLs: use the search field"]
    : undefined;
}

/** Applies a typed filter once the user pauses or closes the filters. */
function useCommit(
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

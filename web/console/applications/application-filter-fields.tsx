import { create } from "@bufbuild/protobuf";
import { useMemo, useState } from "react";
import { ListApplicationsRequestSchema } from "../../../gen/latchkey/v1/application_service_pb.js";
import type { FilterFieldProps } from "../lists/filters.js";
import { keyErrors, useCommit } from "../lists/text-filter.js";
import { usePermissionSuggestions } from "../rules/known-permissions.js";
import { Combobox } from "../ui/combobox.js";
import { useFieldErrors } from "../validation/field-errors.js";

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

import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { useEffect, useMemo, useState, useSyncExternalStore } from "react";
import type { ApplicationType, Grants } from "../../../src/contract/grants.js";
import { capitalize, inWords } from "../../common/words.js";
import { createLoader } from "../ui/preload.js";
import type * as validate from "./validate.js";
import type { FieldErrors } from "./validate.js";

type Validation = typeof validate;

const none: FieldErrors = {};

/**
 * Validates a message with the constraints of the service. The validator is large, so it is
 * loaded after the page, or by the first edit; until then there are no errors. Memoize the message.
 */
export function useFieldErrors<Desc extends DescMessage>(
  schema: Desc,
  message: MessageShape<Desc>,
): FieldErrors {
  const validation = useValidation(message);
  return useMemo(
    () => validation?.fieldErrorsOf(schema, message) ?? none,
    [validation, schema, message],
  );
}

/** Checks which grants the application type allows. */
export function useGrantErrors(type: ApplicationType, grants: Grants): FieldErrors {
  const validation = useValidation(grants);
  return useMemo(() => validation?.grantErrorsOf(type, grants) ?? none, [validation, type, grants]);
}

let loaded: Validation | undefined;
const listeners = new Set<() => void>();

const loadValidation = createLoader(async () => {
  loaded = await import("./validate.js");
  for (const listener of listeners) {
    listener();
  }
});

function listen(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Returns the validator once it is loaded. Loads it when the value changes. */
function useValidation(value: unknown): Validation | undefined {
  const [initial] = useState(value);
  const isEdited = value !== initial;
  useEffect(() => {
    if (isEdited) {
      // Without it, the service validates.
      loadValidation().catch(() => undefined);
    }
  }, [isEdited]);
  return useSyncExternalStore(listen, () => loaded);
}

/** Errors within a field, by relative path. Errors of the field itself have an empty path. */
export function errorsWithin(errors: FieldErrors, path: string): FieldErrors {
  return Object.fromEntries(
    Object.entries(errors).flatMap(([field, messages]) => {
      if (field === path) {
        return [["", messages]];
      }
      return field.startsWith(`${path}.`) ? [[field.slice(path.length + 1), messages]] : [];
    }),
  );
}

/** Errors of a list and of its items, prefixed with the item. */
export function errorsOfList(
  errors: FieldErrors,
  path: string,
  items: readonly string[],
): readonly string[] {
  const itemErrors = items.flatMap((item, index) =>
    (errors[`${path}[${index}]`] ?? []).map((message) => `${item}: ${message}`),
  );
  return [...(errors[path] ?? []), ...itemErrors];
}

/** Merges errors without duplicates. */
export function mergeErrors(...all: readonly FieldErrors[]): FieldErrors {
  const merged: Record<string, readonly string[]> = {};
  for (const [field, messages] of all.flatMap((errors) => Object.entries(errors))) {
    merged[field] = [...new Set([...(merged[field] ?? []), ...messages])];
  }
  return merged;
}

/** The labels that differ from the field name of the service. */
const labels: Readonly<Record<string, string>> = {
  allowed_cidrs: "Networks",
  allowed_origins: "Origins",
  expires_at: "Expires",
  external_id: "External ID",
};

/** Shown for the one constraint on whole requests: they must grant something. */
export const grantRequired = "Add at least one permission or rule.";

/** `Rules › Container: must be a path`. */
export function describeErrors(path: string, messages: readonly string[]): string {
  return path === "request" ? grantRequired : `${labelOf(path)}: ${messages.join(", ")}`;
}

/** `Rules › Container` for `rules[0].container`, `Metadata › team` for `metadata["team"]`. */
export function labelOf(path: string): string {
  const [, fields = path, key] = /^([^"]*?)(?:\["(.*)"\])?$/s.exec(path) ?? [];
  const names = fields.split(".").map((segment) => segment.replace(/\[\d+\]$/, ""));
  const shown = names.map((name) => labels[name] ?? capitalize(inWords(name)));
  return [...shown, ...(key ? [key] : [])].join(" › ");
}

/** `rules` for `rules[0].container`. */
export function topLevelFieldOf(path: string): string {
  return path.replace(/[.[].*$/, "");
}

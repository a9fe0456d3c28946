import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { useEffect, useMemo, useState } from "react";
import type { ApplicationType, Grants } from "../../../src/contract/grants.js";
import type * as validate from "./validate.js";
import type { FieldErrors } from "./validate.js";

type Validation = typeof validate;

const none: validate.FieldErrors = {};

/**
 * What the service would say of a message, while it is being made. The checks
 * are large and come by themselves: until they are there nothing is wrong, and
 * the service has the last word anyway. Keep the message while nothing in it
 * changes, so that it is not looked at again.
 */
export function useFieldErrors<Desc extends DescMessage>(
  schema: Desc,
  message: MessageShape<Desc>,
): validate.FieldErrors {
  const validation = useValidation();
  return useMemo(
    () => validation?.fieldErrorsOf(schema, message) ?? none,
    [validation, schema, message],
  );
}

/** What the service would not let an application of a type have, beside what breaks the rules of the message. */
export function useGrantErrors(type: ApplicationType, grants: Grants): validate.FieldErrors {
  const validation = useValidation();
  return useMemo(() => validation?.grantErrorsOf(type, grants) ?? none, [validation, type, grants]);
}

function useValidation(): Validation | undefined {
  const [validation, setValidation] = useState<Validation>();
  useEffect(() => {
    let isShown = true;
    import("./validate.js").then((loaded) => isShown && setValidation(loaded));
    return () => {
      isShown = false;
    };
  }, []);
  return validation;
}

/** What is wrong within a field, by the paths from there; with the field itself it is by the empty path. */
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

/** What is wrong with a list of names and with each of them, which is then called by its name. */
export function errorsOfNames(
  errors: FieldErrors,
  path: string,
  names: readonly string[],
): readonly string[] {
  const ofEach = names.flatMap((name, place) =>
    (errors[`${path}[${place}]`] ?? []).map((message) => `${name}: ${message}`),
  );
  return [...(errors[path] ?? []), ...ofEach];
}

/** What is wrong by several accounts, each message once. */
export function mergeErrors(...all: readonly FieldErrors[]): FieldErrors {
  const merged: Record<string, readonly string[]> = {};
  for (const [field, messages] of all.flatMap((errors) => Object.entries(errors))) {
    merged[field] = [...new Set([...(merged[field] ?? []), ...messages])];
  }
  return merged;
}

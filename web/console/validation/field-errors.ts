import type { FieldErrors } from "./validate.js";

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

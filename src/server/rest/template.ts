/** A part of a path: a fixed text, or the place of a field of the request. */
export type Segment = { readonly literal: string } | { readonly field: string };

/**
 * Parses the path of a REST binding:
 *
 *     template = "/" segment { "/" segment }
 *     segment  = literal | "{" field "}"
 *     literal  = letters, digits, "-", "_" or "."
 *     field    = the proto name of a field
 *
 * Anything else throws: a mistake in a proto must show when the server starts.
 */
export function parseTemplate(template: string): Segment[] {
  if (!template.startsWith("/")) {
    throw new Error(`the path "${template}" must start with a slash`);
  }
  return template
    .slice(1)
    .split("/")
    .map((part) => {
      const field = /^\{([a-z][a-z0-9_]*)\}$/.exec(part)?.[1];
      if (field !== undefined) {
        return { field };
      }
      if (/^[A-Za-z0-9_.-]+$/.test(part)) {
        return { literal: part };
      }
      throw new Error(
        `the path "${template}" has the part "${part}", which is no word and no {field}`,
      );
    });
}

/** The segments of a requested path, decoded; a trailing slash adds none. `undefined` where it is no path. */
export function splitPath(path: string): string[] | undefined {
  const trimmed = path.length > 1 && path.endsWith("/") ? path.slice(0, -1) : path;
  if (!trimmed.startsWith("/")) {
    return undefined;
  }
  const parts = trimmed.slice(1).split("/");
  if (!path.includes("%")) {
    return parts;
  }
  try {
    return parts.map(decodeURIComponent);
  } catch {
    return undefined;
  }
}

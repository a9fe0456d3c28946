/** The way to a place in a JSON value. */
export type Path = readonly (string | number)[];

/** Every place in a JSON value. */
export function listJsonPaths(value: unknown, path: Path = []): Path[] {
  const inside =
    typeof value === "object" && value !== null
      ? Object.entries(value).flatMap(([name, item]) =>
          listJsonPaths(item, [...path, Array.isArray(value) ? Number(name) : name]),
        )
      : [];
  return [path, ...inside];
}

/** A copy of a JSON value with another in one of its places. */
export function replaceAtPath(value: unknown, [first, ...rest]: Path, by: unknown): unknown {
  if (first === undefined) {
    return by;
  }
  const copy = structuredClone(value) as Record<string | number, unknown>;
  copy[first] = replaceAtPath(copy[first], rest, by);
  return copy;
}

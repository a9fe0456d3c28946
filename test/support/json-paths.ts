export type Path = readonly (string | number)[];

/** Lists the path of every value in a JSON value, including the value itself. */
export function listJsonPaths(value: unknown, path: Path = []): Path[] {
  const nested =
    typeof value === "object" && value !== null
      ? Object.entries(value).flatMap(([name, item]) =>
          listJsonPaths(item, [...path, Array.isArray(value) ? Number(name) : name]),
        )
      : [];
  return [path, ...nested];
}

/** Returns a copy of a JSON value with the value at a path replaced. */
export function replaceAtPath(
  value: unknown,
  [first, ...rest]: Path,
  replacement: unknown,
): unknown {
  if (first === undefined) {
    return replacement;
  }
  const copy = structuredClone(value) as Record<string | number, unknown>;
  copy[first] = replaceAtPath(copy[first], rest, replacement);
  return copy;
}

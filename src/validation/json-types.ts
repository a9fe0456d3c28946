/** The violations of JSON values of another type, in requests and in the lines of an export. */
export const wrongTypes = {
  object: { message: "must be an object", code: "type.object" },
  array: { message: "must be an array", code: "type.array" },
  string: { message: "must be a string", code: "type.string" },
  integer: { message: "must be a whole number of at most 32 bits", code: "type.integer" },
  number: { message: "must be a number", code: "type.number" },
  boolean: { message: "must be true or false", code: "type.boolean" },
} as const;

export type JsonType = keyof typeof wrongTypes;

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Whether a value is a whole number of at most 32 bits. */
export function isInteger(value: unknown): value is number {
  return typeof value === "number" && (value | 0) === value;
}

/** The path of a member of an object at a path. The path of the whole document is empty. */
export function memberPath(path: string, name: string): string {
  return path === "" ? name : `${path}.${name}`;
}

/** The path of a pair of a map. */
export function pairPath(path: string, key: string): string {
  return `${path}[${JSON.stringify(key)}]`;
}

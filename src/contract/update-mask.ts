import { type DescField, type DescMessage, getOption, type Message } from "@bufbuild/protobuf";
import { type FieldMask, FieldMaskSchema } from "@bufbuild/protobuf/wkt";
import { field as fieldRules } from "../../gen/buf/validate/validate_pb.js";
import { http_header, WithoutMask, without_mask } from "../../gen/latchkey/v1/options_pb.js";
import { memoize } from "../lib/cache.js";

/** Names all fields in an update mask. */
const everything = "*";

/** The update mask of a message, with its fields that an update can change. */
export interface UpdateMask {
  readonly field: DescField;
  readonly updatable: readonly DescField[];
  /** The names that a path may have: all fields of the resource, and all of them at once. */
  readonly names: ReadonlySet<string>;
  /** The starts of paths that name one key of a map. */
  readonly prefixes: readonly string[];
}

/** The maximum number of paths: more than all fields and all keys that an application can have. */
export const maxPaths = 200;

const maskIn = memoize<DescMessage, { readonly mask: UpdateMask | undefined }>(({ fields }) => {
  const mask = fields.find(({ message }) => message?.typeName === FieldMaskSchema.typeName);
  if (!mask) {
    return { mask: undefined };
  }
  const { type } = getOption(mask, fieldRules);
  const names = type.case === "fieldMask" ? type.value.in : [];
  const updatable = fields.filter(({ name }) => names.includes(name));
  const named = fields.filter((field) => field !== mask && getOption(field, http_header) === "");
  const maps = updatable.filter(({ fieldKind }) => fieldKind === "map");
  return {
    mask: {
      field: mask,
      updatable,
      names: new Set([everything, ...named.map(toName)]),
      prefixes: maps.map((map) => pathOfKey(map, "")),
    },
  };
});

/** The update mask of a message, if it has one. Its rule lists the fields that it may name. */
export function updateMaskOf(schema: DescMessage): UpdateMask | undefined {
  return maskIn(schema).mask;
}

/** What an update without an update mask does with an absent field. */
export const withoutMask = memoize<DescField, WithoutMask>((field) =>
  getOption(field, without_mask),
);

/** The path of one key of a map. */
export function pathOfKey({ name }: DescField, key: string): string {
  return `${name}.${key}`;
}

/** The changes that an update names: whole fields, and keys of maps. */
export interface UpdatedFields {
  has(field: DescField): boolean;
  /** The keys of a map that is not replaced as a whole. */
  keysOf(map: DescField): readonly string[];
}

/**
 * Reads which fields an update changes. Without an update mask, these are the fields
 * that it replaces if they are absent, and those that the message has.
 */
export function readUpdatedFields(
  { field, updatable }: UpdateMask,
  message: Message,
): UpdatedFields {
  const values = message as unknown as Readonly<Record<string, unknown>>;
  const mask = values[field.localName] as FieldMask | undefined;
  if (!mask) {
    return {
      has: (field) =>
        withoutMask(field) !== WithoutMask.UNSPECIFIED || isGiven(values[field.localName]),
      keysOf: () => [],
    };
  }
  const paths = new Set(mask.paths.includes(everything) ? updatable.map(toName) : mask.paths);
  return {
    has: ({ name }) => paths.has(name),
    keysOf(map) {
      const prefix = pathOfKey(map, "");
      return paths.has(map.name)
        ? []
        : [...paths].flatMap((path) => (path.startsWith(prefix) ? path.slice(prefix.length) : []));
    },
  };
}

/** The paths of what an update changes, sorted: the same however the update names it. */
export function updatedPaths(mask: UpdateMask, message: Message): string[] {
  const updated = readUpdatedFields(mask, message);
  const fields = mask.updatable.filter(updated.has).map(toName);
  const keys = mask.updatable.flatMap((field) =>
    updated.keysOf(field).map((key) => pathOfKey(field, key)),
  );
  return [...fields, ...keys].sort();
}

/**
 * Whether an update mask may have a path: it names a field of the resource, all fields, or one
 * key of a map. Fields that only the service sets may be named, but are not changed (AIP-203).
 */
export function isAcceptedPath({ names, prefixes }: UpdateMask, path: string): boolean {
  return names.has(path) || prefixes.some((prefix) => path.startsWith(prefix));
}

/** Whether the update mask of a message, if it has one, has more paths than any update needs. */
export function hasTooManyPaths(schema: DescMessage, message: Message): boolean {
  const mask = updateMaskOf(schema);
  const value = mask && (message as unknown as Record<string, unknown>)[mask.field.localName];
  return value !== undefined && (value as FieldMask).paths.length > maxPaths;
}

/** Whether the message has the field. An empty text counts, an empty list or map does not. */
function isGiven(value: unknown): boolean {
  return typeof value === "object" && value !== null
    ? Object.keys(value).length > 0
    : value !== undefined;
}

function toName({ name }: DescField): string {
  return name;
}

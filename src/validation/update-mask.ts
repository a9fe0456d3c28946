import type { DescMessage, Message } from "@bufbuild/protobuf";
import type { FieldMask } from "@bufbuild/protobuf/wkt";
import { WithoutMask } from "../../gen/latchkey/v1/options_pb.js";
import type { FieldViolation } from "../contract/problems.js";
import {
  isAcceptedPath,
  readUpdatedFields,
  type UpdateMask,
  updateMaskOf,
  withoutMask,
} from "../contract/update-mask.js";
import { nearestOf } from "../lib/nearest.js";

/** The standard rule of update masks, which does not say what is wrong with a path. */
export const maskRule = "field_mask.in";

/** The paths that are described. A mask may name far more. */
const maxDescribed = 10;

/**
 * Returns the violations of an update: paths that its mask cannot name, and fields
 * that it names, or replaces without a mask, and that cannot be empty.
 */
export function findUpdateViolations(schema: DescMessage, message: Message): FieldViolation[] {
  const mask = updateMaskOf(schema);
  return mask ? [...findUnknownPaths(mask, message), ...findMissing(mask, message)] : [];
}

function findUnknownPaths(mask: UpdateMask, message: Message): FieldViolation[] {
  const { paths = [] } = (valuesOf(message)[mask.field.localName] ?? {}) as Partial<FieldMask>;
  return paths
    .filter((path) => !isAcceptedPath(mask, path))
    .slice(0, maxDescribed)
    .map((path) => ({
      field: mask.field.name,
      message: describeUnknown(mask, path),
      code: maskRule,
    }));
}

function describeUnknown({ field, updatable }: UpdateMask, path: string): string {
  const text = JSON.stringify(path);
  if (field.parent.fields.some(({ name }) => name === path)) {
    return `cannot name ${text}, which is not a field of the resource`;
  }
  const names = updatable.map(({ name }) => name);
  const near = nearestOf(path, names);
  return near === undefined
    ? `cannot name ${text}: name any of ${names.join(", ")}`
    : `cannot name ${text}: did you mean ${near}?`;
}

function findMissing(mask: UpdateMask, message: Message): FieldViolation[] {
  const updated = readUpdatedFields(mask, message);
  const values = valuesOf(message);
  return mask.updatable
    .filter((field) => withoutMask(field) === WithoutMask.REQUIRED)
    .filter((field) => updated.has(field) && !values[field.localName])
    .map(({ name }) => ({ field: name, message: "is required", code: "required" }));
}

function valuesOf(message: Message): Readonly<Record<string, unknown>> {
  return message as unknown as Readonly<Record<string, unknown>>;
}

import {
  type DescField,
  type DescMessage,
  type JsonObject,
  type JsonValue,
  ScalarType,
} from "@bufbuild/protobuf";
import { isValid, type Validate } from "../contract/validate.js";

/** What the service says of a request with one mistake in it, where its fields can be mistaken. */
export function findMistake(
  message: DescMessage,
  example: JsonObject,
  validate: Validate,
): Record<string, string[]> | undefined {
  for (const field of message.fields) {
    for (const value of wrongValues(field)) {
      const errors = validate(message, { ...example, [field.name]: value });
      if (!isValid(errors)) {
        return errors;
      }
    }
  }
  return undefined;
}

/** Values at which rules commonly take offence. */
function wrongValues(field: DescField): JsonValue[] {
  const scalars = wrongScalars(field.scalar);
  return field.fieldKind === "list" ? [...scalars.map((scalar) => [scalar]), []] : scalars;
}

function wrongScalars(scalar: ScalarType | undefined): (string | number)[] {
  switch (scalar) {
    case ScalarType.STRING:
      return ["?", ""];
    case ScalarType.INT32:
      return [0];
    default:
      return [];
  }
}

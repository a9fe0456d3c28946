import {
  type DescField,
  type DescMessage,
  type JsonObject,
  type JsonValue,
  ScalarType,
} from "@bufbuild/protobuf";
import { isValid, type Validate } from "../contract/validate.js";

/** Returns the validation errors of a request with one invalid field, if a field can be invalid. */
export function exampleErrors(
  message: DescMessage,
  example: JsonObject,
  validate: Validate,
): Record<string, string[]> | undefined {
  for (const field of message.fields) {
    for (const value of invalidValues(field)) {
      const errors = validate(message, { ...example, [field.name]: value });
      if (!isValid(errors)) {
        return errors;
      }
    }
  }
  return undefined;
}

/** Values that most rules refuse. */
function invalidValues(field: DescField): JsonValue[] {
  const scalars = invalidScalars(field.scalar);
  return field.fieldKind === "list" ? [...scalars.map((scalar) => [scalar]), []] : scalars;
}

function invalidScalars(scalar: ScalarType | undefined): (string | number)[] {
  switch (scalar) {
    case ScalarType.STRING:
      return ["?", ""];
    case ScalarType.INT32:
      return [0];
    default:
      return [];
  }
}

import { type DescField, type DescMessage, type JsonObject, ScalarType } from "@bufbuild/protobuf";
import { isValid, type Validate } from "./validate.js";

/** What the service says of a request with one mistake in it, where its fields can be mistaken. */
export function findMistake(
  message: DescMessage,
  example: JsonObject,
  validate: Validate,
): Record<string, string[]> | undefined {
  for (const field of message.fields) {
    for (const wrong of wrongValues(field)) {
      const value = field.fieldKind === "list" ? [wrong] : wrong;
      const errors = validate(message, { ...example, [field.name]: value });
      if (!isValid(errors)) {
        return errors;
      }
    }
  }
  return undefined;
}

/** Values at which rules commonly take offence. */
function wrongValues({ scalar }: DescField): (string | number)[] {
  switch (scalar) {
    case ScalarType.STRING:
      return ["?", ""];
    case ScalarType.INT32:
      return [0];
    default:
      return [];
  }
}

/** Derives the JSON-schema validators of documents from the messages of their records. */
import { type DescField, type DescMessage, getOption, ScalarType } from "@bufbuild/protobuf";
import type { Document } from "mongodb";
import { field as rulesOf } from "../../../gen/buf/validate/validate_pb.js";
import { formatOf, isRequired } from "../../contract/message-converter.js";
import { fieldNameIn } from "./documents.js";

/**
 * The schema of a record's documents. Derived fields must exist, other added
 * ones may. Unlisted fields are allowed, so that a newer version can add fields
 * during a rolling upgrade.
 */
export function recordSchema(
  record: DescMessage,
  { derived = {}, optional = {} }: { derived?: Document; optional?: Document },
): Document {
  const { required = [], properties, ...schema } = messageSchema(record, record);
  return {
    ...schema,
    required: [...required, ...Object.keys(derived)],
    properties: { ...properties, ...derived, ...optional },
  };
}

/** The schema of a record or of a message in it. */
function messageSchema(message: DescMessage, record: DescMessage): Document {
  const { fields } = message;
  const nameOf = fieldNameIn(record);
  const required = fields.filter(isRequired).map(nameOf);
  return {
    bsonType: "object",
    // MongoDB refuses an empty list.
    ...(required.length > 0 && { required }),
    properties: Object.fromEntries(
      fields.map((field) => [nameOf(field), fieldSchema(field, record)]),
    ),
  };
}

function fieldSchema(field: DescField, record: DescMessage): Document {
  const value = field.message
    ? messageSchema(field.message, record)
    : scalarSchema(field, field.parent === record);
  switch (field.fieldKind) {
    case "list":
      return { bsonType: "array", items: value };
    case "map":
      return { bsonType: "array", items: pairSchema(value) };
    default:
      return value;
  }
}

const pairSchema = (value: Document): Document => ({
  bsonType: "object",
  required: ["key", "value"],
  properties: { key: { bsonType: "string" }, value },
});

function scalarSchema(field: DescField, isOfRecord: boolean): Document {
  switch (formatOf(field)) {
    case "id":
    case "bytes":
      return { bsonType: "binData" };
    case "time":
      return { bsonType: "date" };
    default: {
      // The values of a rule are the concern of the API.
      const values = isOfRecord ? valuesOf(field) : [];
      return values.length > 0 ? { enum: values } : { bsonType: bsonTypeOf(field.scalar) };
    }
  }
}

/** The values that a field may have, if they are listed. */
function valuesOf(field: DescField): string[] {
  const { type } = getOption(field, rulesOf);
  return type.case === "string" ? [...type.value.in] : [];
}

function bsonTypeOf(scalar: ScalarType | undefined): string {
  switch (scalar) {
    case ScalarType.STRING:
      return "string";
    case ScalarType.BOOL:
      return "bool";
    case ScalarType.INT32:
      return "int";
    default:
      return "number";
  }
}

import {
  create,
  type DescField,
  type DescMessage,
  getOption,
  type Message,
} from "@bufbuild/protobuf";
import { FieldMaskSchema } from "@bufbuild/protobuf/wkt";
import { field as rulesOf } from "../../../gen/buf/validate/validate_pb.js";
import type { Fields } from "../codec/message-fields.js";

/** Whether a field is an update mask. REST requests have none: the fields in their JSON are the mask. */
export function isUpdateMask({ message }: DescField): boolean {
  return message?.typeName === FieldMaskSchema.typeName;
}

/**
 * Creates a function that sets the update mask of a message to the updatable fields
 * in its JSON. So an empty list or `null` differs from an absent field.
 */
export function createMaskWriter({
  fields,
}: DescMessage): (message: Message, json: unknown) => Message {
  const mask = fields.find(isUpdateMask);
  if (!mask) {
    return (message) => message;
  }
  const { type } = getOption(mask, rulesOf);
  const maskable = type.case === "fieldMask" ? type.value.in : [];
  return (message, json) => {
    const paths = maskable.filter((name) => Object.hasOwn(json as object, name));
    (message as unknown as Fields)[mask.localName] = create(FieldMaskSchema, { paths });
    return message;
  };
}

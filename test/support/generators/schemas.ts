import {
  create,
  createFileRegistry,
  type DescMessage,
  type MessageInitShape,
  setExtension,
} from "@bufbuild/protobuf";
import {
  DescriptorProtoSchema,
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
  type FieldDescriptorProtoSchema,
  FieldOptionsSchema,
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
  file_google_protobuf_duration,
  MessageOptionsSchema,
} from "@bufbuild/protobuf/wkt";
import {
  type FieldRulesSchema,
  field as fieldRules,
  FieldRulesSchema as fieldRulesSchema,
  MessageRulesSchema,
  message as messageRules,
} from "../../../gen/buf/validate/validate_pb.js";

type Rules = MessageInitShape<typeof FieldRulesSchema>;
type Field = MessageInitShape<typeof FieldDescriptorProtoSchema>;

/** Definitions of the field `value`, one for each kind that rules support. */
export const fields = {
  string: { type: FieldDescriptorProto_Type.STRING },
  optionalString: {
    type: FieldDescriptorProto_Type.STRING,
    proto3Optional: true,
    oneofIndex: 0,
  },
  int32: { type: FieldDescriptorProto_Type.INT32 },
  strings: {
    type: FieldDescriptorProto_Type.STRING,
    label: FieldDescriptorProto_Label.REPEATED,
  },
  duration: { type: FieldDescriptorProto_Type.MESSAGE, typeName: ".google.protobuf.Duration" },
  durations: {
    type: FieldDescriptorProto_Type.MESSAGE,
    typeName: ".google.protobuf.Duration",
    label: FieldDescriptorProto_Label.REPEATED,
  },
  map: {
    type: FieldDescriptorProto_Type.MESSAGE,
    typeName: ".test.Subject.ValueEntry",
    label: FieldDescriptorProto_Label.REPEATED,
  },
  /** Messages with a list field. */
  messages: {
    type: FieldDescriptorProto_Type.MESSAGE,
    typeName: ".test.Item",
    label: FieldDescriptorProto_Label.REPEATED,
  },
} satisfies Record<string, Field>;

/** The pairs of a map of strings. */
const valueEntry = create(DescriptorProtoSchema, {
  name: "ValueEntry",
  field: ["key", "value"].map((name, index) => ({
    name,
    number: index + 1,
    label: FieldDescriptorProto_Label.OPTIONAL,
    ...fields.string,
  })),
  options: { mapEntry: true },
});

/** Creates the schema of a message with the field `value` and the given rules. */
export function createSchema(field: Field, rules: Rules, expressions: string[] = []): DescMessage {
  const options = create(FieldOptionsSchema);
  setExtension(options, fieldRules, create(fieldRulesSchema, rules));
  const messageOptions = create(MessageOptionsSchema);
  const cel = expressions.map((expression) => ({ id: "rule", message: "is wrong", expression }));
  setExtension(messageOptions, messageRules, create(MessageRulesSchema, { cel }));
  return schemaFrom({
    options: messageOptions,
    oneofDecl: field.proto3Optional ? [{ name: "_value" }] : [],
    field: [
      {
        name: "value",
        jsonName: "value",
        number: 1,
        label: FieldDescriptorProto_Label.OPTIONAL,
        ...field,
        options,
      },
    ],
  });
}

/** The schema of a message with a oneof of scalars and another field. */
export const oneofSchema = schemaFrom({
  oneofDecl: [{ name: "choice" }],
  field: [
    { name: "text", jsonName: "text", number: 1, oneofIndex: 0, ...fields.string },
    { name: "whole_number", jsonName: "wholeNumber", number: 2, oneofIndex: 0, ...fields.int32 },
    { name: "other", jsonName: "other", number: 3, ...fields.string },
  ].map((field) => ({ label: FieldDescriptorProto_Label.OPTIONAL, ...field })),
});

/** The schema of a message whose field `next` has the same type. */
export const recursiveSchema = schemaFrom({
  field: [
    {
      name: "next",
      number: 1,
      label: FieldDescriptorProto_Label.OPTIONAL,
      type: FieldDescriptorProto_Type.MESSAGE,
      typeName: ".test.Subject",
    },
  ],
});

function schemaFrom(message: MessageInitShape<typeof DescriptorProtoSchema>): DescMessage {
  const file = create(FileDescriptorProtoSchema, {
    name: "test.proto",
    package: "test",
    syntax: "proto3",
    dependency: [file_google_protobuf_duration.proto.name],
    messageType: [
      { ...message, name: "Subject", nestedType: [valueEntry] },
      { name: "Item", field: [{ name: "value", number: 1, ...fields.strings }] },
    ],
  });
  const registry = createFileRegistry(
    create(FileDescriptorSetSchema, { file: [file_google_protobuf_duration.proto, file] }),
  );
  return registry.getMessage("test.Subject") as DescMessage;
}

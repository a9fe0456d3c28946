import {
  clearExtension,
  clearField as clearValue,
  fromBinary,
  getExtension,
  hasExtension,
  setExtension,
  toBinary,
} from "@bufbuild/protobuf";
import { base64Decode, base64Encode } from "@bufbuild/protobuf/wire";
import {
  type DescriptorProto,
  type FieldDescriptorProto,
  FileDescriptorProtoSchema,
  FileOptionsSchema,
} from "@bufbuild/protobuf/wkt";
import type { Plugin } from "vite";
import { type FieldRules, field } from "../gen/buf/validate/validate_pb.js";
import {
  errors,
  example,
  leaves_out,
  request_items,
  response_example,
  response_items,
  rest_texts,
} from "../gen/latchkey/v1/options_pb.js";

/** Removes from the descriptors in generated code what only the service and the generators read. */
export function compactDescriptors(): Plugin {
  return {
    name: "compact-descriptors",
    apply: "build",
    transform(code, id) {
      return /\/gen\/latchkey\/\S+_pb\.ts$/.test(id)
        ? { code: code.replace(/(?<=fileDesc\(")[^"]+/, compact), map: null }
        : undefined;
    },
  };
}

/** Options of files that only generators of other languages read. */
const { goPackage, javaPackage, javaMultipleFiles } = FileOptionsSchema.field;

function compact(descriptor: string): string {
  const file = fromBinary(FileDescriptorProtoSchema, base64Decode(descriptor));
  file.messageType.forEach(clearMessage);
  if (file.options) {
    for (const option of [goPackage, javaPackage, javaMultipleFiles]) {
      clearValue(file.options, option);
    }
  }
  for (const { options } of file.service.flatMap(({ method }) => method)) {
    if (options) {
      clearExtension(options, response_example);
      clearExtension(options, rest_texts);
      clearExtension(options, errors);
      clearExtension(options, leaves_out);
      clearExtension(options, request_items);
      clearExtension(options, response_items);
    }
  }
  return base64Encode(toBinary(FileDescriptorProtoSchema, file), "std_raw");
}

function clearMessage({ options, field: fields, nestedType }: DescriptorProto): void {
  if (options) {
    clearExtension(options, example);
  }
  fields.forEach(clearField);
  nestedType.forEach(clearMessage);
}

function clearField({ options }: FieldDescriptorProto): void {
  if (options && hasExtension(options, field)) {
    const rules = getExtension(options, field);
    clearRules(rules);
    setExtension(options, field, rules);
  }
}

function clearRules({ type }: Pick<FieldRules, "type">): void {
  if (type.case === "repeated") {
    clearRules(type.value.items ?? noRules);
  } else if (type.case === "map") {
    clearRules(type.value.keys ?? noRules);
    clearRules(type.value.values ?? noRules);
  } else if (type.value && "example" in type.value) {
    type.value.example = [];
  }
}

const noRules: Pick<FieldRules, "type"> = { type: { case: undefined } };

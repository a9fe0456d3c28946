import { type DescMessage, getOption, type Message, type MessageShape } from "@bufbuild/protobuf";
import { pathToString } from "@bufbuild/protobuf/reflect";
import { createValidator } from "@bufbuild/protovalidate";
import { field as fieldRules } from "../gen/buf/validate/validate_pb.js";
import { validationRules } from "./contract.js";
import { invalidRequest } from "./errors.js";

const validator = createValidator({ registry: validationRules });

/** Throws all that breaks the rules written in the proto of a message. */
export function checkMessage<Desc extends DescMessage>(
  schema: Desc,
  message: MessageShape<Desc>,
): void {
  checkCounts(schema, message, "");
  const result = validator.validate(schema, message);
  if (result.kind === "error") {
    throw result.error;
  }
  if (result.kind === "invalid") {
    const violations = result.violations.map(({ field, message }) => ({
      field: pathToString(field) || "request",
      message,
    }));
    throw invalidRequest(violations);
  }
}

/** A list in a message. */
interface ListField {
  readonly name: string;
  readonly localName: string;
  /** How many items it may have. */
  readonly most: number;
  /** What its items are, where they are messages. */
  readonly items: DescMessage | undefined;
}

const listFields = new Map<DescMessage, readonly ListField[]>();

/**
 * Refuses lists that are too long before anyone looks at their items: the
 * validator would look at every one of them first.
 */
function checkCounts(schema: DescMessage, message: Message, path: string): void {
  for (const { name, localName, most, items } of listFieldsOf(schema)) {
    const list = (message as unknown as Record<string, unknown[]>)[localName] ?? [];
    const field = path + name;
    if (list.length > most) {
      throw invalidRequest({ field, message: `must contain no more than ${most} items` });
    }
    if (items) {
      for (const [at, item] of list.entries()) {
        checkCounts(items, item as Message, `${field}[${at}].`);
      }
    }
  }
}

function listFieldsOf(schema: DescMessage): readonly ListField[] {
  const known = listFields.get(schema);
  if (known) {
    return known;
  }
  const found = schema.fields.flatMap((field) => {
    if (field.fieldKind !== "list") {
      return [];
    }
    const rules = getOption(field, fieldRules).type;
    const most = rules.case === "repeated" ? Number(rules.value.maxItems) : 0;
    const items = field.listKind === "message" ? field.message : undefined;
    const { name, localName } = field;
    return [{ name, localName, most: most || Number.POSITIVE_INFINITY, items }];
  });
  listFields.set(schema, found);
  return found;
}

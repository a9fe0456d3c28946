import type { MessageInitShape } from "@bufbuild/protobuf";
import { ApplicationSchema } from "../../../gen/latchkey/v1/application_service_pb.js";
import { createFieldReaders } from "../../contract/message-converter.js";
import type { Pace } from "../../lib/event-loop.js";
import type { ApplicationRecord } from "../../store/port/records.js";
import { toTimestamp } from "../../validation/time.js";
import { toAccessRules } from "../rules.js";
import { versionOf } from "./update-application.js";

type ApplicationInit = MessageInitShape<typeof ApplicationSchema>;
type AccessRules = ReturnType<typeof toAccessRules>;

/** Shows a record as a response. A field is converted when it is read: a cached response needs few. */
class ApplicationMessage {
  constructor(
    readonly record: ApplicationRecord,
    readonly key: string | undefined,
    /** The rules, if they are converted already. */
    readonly convertedRules: AccessRules | undefined,
  ) {}
}

/** The fields that differ from those of the record. */
const differing: Readonly<
  Record<string, (record: ApplicationRecord, message: ApplicationMessage) => unknown>
> = {
  version: versionOf,
  rules: (record, { convertedRules }) => convertedRules ?? toAccessRules(record.rules),
  status: ({ disabled }) => (disabled ? "disabled" : "enabled"),
};

const readers = createFieldReaders(ApplicationSchema, {
  values: { time: toTimestamp },
  shareNested: true,
});

for (const { name, read } of readers.filter((reader) => reader.name !== "key")) {
  const readField = differing[name] ?? read;
  Object.defineProperty(ApplicationMessage.prototype, name, {
    get(this: ApplicationMessage) {
      return readField(this.record, this);
    },
  });
}

/** Converts a record to the response message. The key is present only if it was just created. */
export function toApplication(
  record: ApplicationRecord,
  key?: string,
  rules?: AccessRules,
): ApplicationInit {
  return new ApplicationMessage(record, key, rules) as ApplicationInit;
}

/** Converts the records of a page. The rules are converted one record after another: all of them take long. */
export async function toApplications(
  records: readonly ApplicationRecord[],
  pace: Pace,
): Promise<ApplicationInit[]> {
  const messages: ApplicationInit[] = [];
  for (const record of records) {
    const pause = pace();
    if (pause) {
      await pause;
    }
    messages.push(toApplication(record, undefined, toAccessRules(record.rules)));
  }
  return messages;
}

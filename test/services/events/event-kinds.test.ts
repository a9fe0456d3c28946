import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { DescMessage } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import {
  EventSchema,
  ListEventsRequestSchema,
  WatchEventsRequestSchema,
} from "../../../gen/latchkey/v1/event_service_pb.js";
import { choicesOf } from "../../../src/contract/fields.js";

/** The allowed values of a message's `kind`. */
function getAllowedKinds({ field }: DescMessage): readonly string[] {
  return choicesOf(field.kind as NonNullable<typeof field.kind>);
}

/** Finds the kinds that are literals in the source. Codes of violations may look alike. */
function findKindsInSource(): string[] {
  const files = readdirSync("src", { recursive: true, encoding: "utf8" });
  const kinds = files
    .filter((file) => file.endsWith(".ts"))
    .flatMap((file) => [
      ...readFileSync(join("src", file), "utf8").matchAll(
        /(?<!code: )"((?:application|key|session|access)\.[a-z_]+)"/g,
      ),
    ])
    .map(([, kind = ""]) => kind);
  return kinds;
}

/** The kinds that are composed. */
const expiryKinds = ["application", "key", "last_manager"].flatMap((prefix) => [
  `${prefix}.expiring`,
  `${prefix}.expired`,
]);

describe("the event kinds in the contract", () => {
  it("match the kinds that the service writes", () => {
    const written = new Set([...findKindsInSource(), ...expiryKinds]);
    expect(written).toEqual(new Set(getAllowedKinds(EventSchema)));
  });

  it.each([ListEventsRequestSchema, WatchEventsRequestSchema])("match those of %s", (schema) => {
    expect(getAllowedKinds(schema)).toEqual(getAllowedKinds(EventSchema));
  });
});

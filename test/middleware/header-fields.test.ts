import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import {
  ApplicationSchema,
  DeleteApplicationRequestSchema,
  GetApplicationRequestSchema,
} from "../../gen/latchkey/v1/application_service_pb.js";
import { Problem } from "../../src/errors.js";
import { createHeaderReader } from "../../src/middleware/header-fields.js";
import { createHeaderWriter } from "../../src/transport/rest/encode.js";

const read = createHeaderReader(DeleteApplicationRequestSchema);
const write = createHeaderWriter(ApplicationSchema, ["content-type", "application/json"]);

const headersOf = (text: string) => ({
  header: { get: (name: string) => (name === "if-match" ? text : null) },
  isRepeated: () => false,
});
const noHeaders = { header: new Headers(), isRepeated: () => false };

function readTag(text: string): string | undefined {
  const message = create(DeleteApplicationRequestSchema, { id: "42" });
  read(message, headersOf(text));
  return message.ifMatch;
}

/** The text between the quotes of an entity tag. */
const tagText = fc
  .array(
    fc.integer({ min: 0x21, max: 0x7e }).filter((code) => code !== 0x22),
    { minLength: 1 },
  )
  .map((codes) => String.fromCharCode(...codes));

describe("a header field", () => {
  it("round-trips any value", () => {
    fc.assert(
      fc.property(tagText, (version) => {
        const [type, json, name, tag = ""] = write(create(ApplicationSchema, { version }));
        expect([type, json, name]).toEqual(["content-type", "application/json", "etag"]);
        expect(readTag(tag)).toBe(version);
      }),
    );
  });

  it("is absent if the header is absent", () => {
    const message = create(DeleteApplicationRequestSchema, { id: "42" });
    read(message, noHeaders);
    expect(message).toEqual(create(DeleteApplicationRequestSchema, { id: "42" }));
  });

  it("is read with or without quotes from the message", () => {
    fc.assert(
      fc.property(tagText, (version) => {
        for (const ifMatch of [version, `"${version}"`]) {
          const message = create(DeleteApplicationRequestSchema, { ifMatch });
          read(message, noHeaders);
          expect(message.ifMatch).toBe(version);
          read(message, headersOf(`"${version}"`));
          expect(message.ifMatch).toBe(version);
          expect(() => read(message, headersOf(`"${version}0"`))).toThrow("If-Match header");
        }
      }),
    );
  });

  it("accepts one tag or * and refuses anything else with a problem for the header", () => {
    const part = fc.constantFrom('"', "W/", "*", ",", " ", "1", "a", "\\", "\u00fc", "\n");
    const text = fc.oneof(
      fc.string(),
      fc.array(part).map((parts) => parts.join("")),
    );
    fc.assert(
      fc.property(text, (text) => {
        try {
          const tag = readTag(text);
          expect(text).toBe(tag === "*" ? "*" : `"${tag}"`);
        } catch (error) {
          expect(error).toBeInstanceOf(Problem);
          expect((error as Problem).violations).toMatchObject([{ field: "If-Match" }]);
        }
      }),
    );
  });

  it("leaves messages without such a field unchanged", () => {
    const message = create(GetApplicationRequestSchema, { id: "42" });
    const readNoFields = createHeaderReader(GetApplicationRequestSchema);
    readNoFields(message, headersOf("nonsense"));
    expect(message).toEqual(create(GetApplicationRequestSchema, { id: "42" }));
    const headers = ["a", "b"];
    expect(createHeaderWriter(GetApplicationRequestSchema, headers)(message)).toBe(headers);
  });

  it("must be a string, or the reader cannot be created", () => {
    const [id] = ApplicationSchema.fields;
    const version = ApplicationSchema.field.version;
    const rules = Object.create(ApplicationSchema.field.rules, {
      proto: { value: version.proto },
    });
    const invalid = { ...ApplicationSchema, fields: [id, rules] } as typeof ApplicationSchema;
    expect(() => createHeaderReader(invalid)).toThrow("must be a string to be carried by a header");
  });
});

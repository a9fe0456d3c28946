import { countOf, formatNumber } from "../../common/count.js";
import { Markdown } from "./markdown.js";
import type { OpenApiDocument, Operation, Schema } from "./operations.js";

type Schemas = OpenApiDocument["components"]["schemas"];

interface PropertiesProps {
  readonly schema: Schema;
  readonly schemas: Schemas;
  /** Whether required fields are marked: in requests. */
  readonly isRequest?: boolean | undefined;
}

/** The properties of an object, or of the items of a list. */
export function Properties({ schema, schemas, isRequest = false }: PropertiesProps) {
  const { properties = {}, required = [] } = objectIn(schema, schemas);
  return (
    <ul className="properties">
      {Object.entries(properties).map(([name, property]) => (
        <Property
          key={name}
          name={name}
          schema={property}
          isRequired={isRequest && required.includes(name)}
          isRequest={isRequest}
          schemas={schemas}
        />
      ))}
    </ul>
  );
}

export function Description({ schema, schemas }: PropertiesProps) {
  return <Markdown text={resolve(schema, schemas).description ?? ""} />;
}

interface PropertyProps extends PropertiesProps {
  readonly name: string;
  readonly isRequired: boolean;
}

/** A property or parameter with its type, description, limits and nested properties. */
export function Property({ name, schema, schemas, isRequired, isRequest }: PropertyProps) {
  const resolved = resolve(schema, schemas);
  const { properties = {} } = objectIn(resolved, schemas);
  const count = Object.keys(properties).length;
  const description = [resolved.description, resolved.items?.description].filter(Boolean);
  return (
    <li className="property">
      <p className="property-head">
        <code>{name}</code> <span className="type">{nameType(resolved, schemas)}</span>
        {isRequired && <span className="required"> required</span>}
      </p>
      <Markdown text={description.join("\n\n")} />
      <Limits schema={resolved} />
      {count > 0 && (
        <details>
          <summary>{`${countOf(count, "field")} of ${name}`}</summary>
          <Properties schema={resolved} schemas={schemas} isRequest={isRequest} />
        </details>
      )}
    </li>
  );
}

/** The names and schemas of the fields of an object at any depth. */
export function fieldsOf(schema: Schema, schemas: Schemas): (readonly [string, Schema])[] {
  return Object.entries(objectIn(schema, schemas).properties ?? {}).flatMap(([name, property]) => {
    const resolved = resolve(property, schemas);
    return [[name, resolved] as const, ...fieldsOf(resolved, schemas)];
  });
}

/**
 * The example of the response to a sample that creates something: what the sample could set, but
 * does not, is empty or absent.
 */
export function createdExample({ body, response }: Operation, schemas: Schemas): unknown {
  const { example } = response;
  if (response.status !== "201" || !body) {
    return example;
  }
  const sent = (body.examples[0]?.value ?? {}) as object;
  const { properties = {} } = objectIn(body.schema, schemas);
  const fields = Object.entries(example as object).map(([name, value]) => {
    const isUnset = name in properties && !(name in sent);
    return [name, isUnset ? emptyValue(properties[name] as Schema) : value];
  });
  return Object.fromEntries(fields.filter(([, value]) => value !== undefined));
}

function emptyValue({ type, additionalProperties }: Schema): unknown {
  return type === "array" ? [] : typeof additionalProperties === "object" ? {} : undefined;
}

/** The schema with its reference resolved. Its own keywords take precedence. */
function resolve({ $ref, ...own }: Schema, schemas: Schemas): Schema {
  const name = $ref?.split("/").at(-1);
  return name === undefined ? own : { ...schemas[name], ...own };
}

/** The object that a schema describes, alone or in a list. */
function objectIn(schema: Schema, schemas: Schemas): Schema {
  const { items, ...object } = resolve(schema, schemas);
  return items ? resolve(items, schemas) : object;
}

const formats: Readonly<Record<string, string>> = { uuid: "UUID", "date-time": "timestamp" };

function nameType(
  { type = "object", format = "", items, additionalProperties }: Schema,
  schemas: Schemas,
): string {
  const [base = "", ...others] = [type].flat();
  const isMap = typeof additionalProperties === "object";
  const name = isMap ? "map" : (formats[format] ?? base);
  const full = items ? `list of ${nameType(resolve(items, schemas), schemas)}s` : name;
  return [full, ...others].join(" or ");
}

/** The allowed values, the limits and an example. */
function Limits({ schema }: { readonly schema: Schema }) {
  const { items, description = "" } = schema;
  const known = schema.enum ?? schema["x-extensible-enum"];
  // Most descriptions name all values.
  const values = known?.every((value) => description.includes(`\`${value}\``)) ? undefined : known;
  const limits = [...describeLimits(schema), ...(items ? describeLimits(items, "each ") : [])];
  // The values of enums and booleans are known.
  const [example] =
    known || schema.type === "boolean" ? [] : (schema.examples ?? items?.examples ?? []);
  return (
    <>
      {values && (
        <p className="values">
          {values.map((value) => (
            <code key={value}>{value}</code>
          ))}
        </p>
      )}
      {(limits.length > 0 || example !== undefined) && (
        <p className="limits">
          {limits.map((limit) => (
            <span key={limit}>{limit}</span>
          ))}
          {example !== undefined && (
            <span>
              e.g. <code>{typeof example === "string" ? example : JSON.stringify(example)}</code>
            </span>
          )}
        </p>
      )}
    </>
  );
}

function describeLimits(schema: Schema, prefix = ""): string[] {
  const { minLength, maxLength, minItems, maxItems, minimum, maximum } = schema;
  const { uniqueItems, maxProperties } = schema;
  return [
    ...describeRange(minLength, maxLength, (range) => `${range} characters`),
    ...describeRange(minItems, maxItems, (range) => `${range} items`),
    ...describeRange(undefined, maxProperties, (range) => `${range} pairs`),
    ...describeRange(minimum, maximum, (range) => range),
    ...(uniqueItems ? ["no duplicates"] : []),
  ].map((limit) => prefix + limit);
}

function describeRange(
  min: number | undefined,
  max: number | undefined,
  describe: (range: string) => string,
): string[] {
  if (max === undefined) {
    return min === undefined ? [] : [describe(`at least ${formatNumber(min)}`)];
  }
  return [
    describe(
      min === undefined
        ? `at most ${formatNumber(max)}`
        : `${formatNumber(min)} to ${formatNumber(max)}`,
    ),
  ];
}

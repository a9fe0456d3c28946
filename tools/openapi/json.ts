/** A part of the document. Members that are `undefined` are not written. */
export type Json = { readonly [name: string]: unknown };

export function refer(section: "headers" | "responses" | "schemas", name: string): Json {
  return { $ref: `#/components/${section}/${name}` };
}

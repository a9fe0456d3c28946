import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { protoCamelCase, protoSnakeCase } from "@bufbuild/protobuf/reflect";
import type { FieldViolation } from "../../contract/problems.js";
import { pathOfKey, updateMaskOf } from "../../contract/update-mask.js";
import { invalidRequest } from "../../errors.js";
import { isObject } from "../../validation/json-types.js";

type JsonObject = Record<string, unknown>;

/**
 * Rewrites the update mask in the JSON of a message, if it has one, so that the library reads
 * the paths that it names. The library reads paths in lowerCamelCase only, and converts all of
 * a path to snake_case, even the key of a map.
 */
export function rewriteUpdateMask(schema: DescMessage, value: unknown): unknown {
  const mask = updateMaskOf(schema);
  if (!(mask && isObject(value))) {
    return value;
  }
  const { field, updatable } = mask;
  const maps = updatable.filter(({ fieldKind }) => fieldKind === "map");
  const violations: FieldViolation[] = [];
  const rewrite = (path: string): string => {
    const [name = ""] = path.split(".", 1);
    const map = maps.find((map) => map.name === protoSnakeCase(name));
    if (!map || name === path) {
      return toCamelCase(path) ?? path;
    }
    const key = path.slice(name.length + 1);
    const camelCase = toCamelCase(key);
    if (camelCase === undefined && !isSentAs(map, key, value)) {
      const message = describeKey(map, path, key);
      violations.push({ field: field.name, message, code: "field_mask.key" });
    }
    return `${map.jsonName}.${camelCase ?? key}`;
  };
  const rewritten = { ...value };
  for (const name of [field.jsonName, field.name]) {
    const paths = value[name];
    if (typeof paths === "string") {
      rewritten[name] = paths.split(",").map(rewrite).join();
    }
  }
  if (violations.length > 0) {
    throw invalidRequest(violations);
  }
  return rewritten;
}

/** A snake_case name in lowerCamelCase, if the library reads that as the same name. */
function toCamelCase(name: string): string | undefined {
  const camelCase = protoCamelCase(name);
  return protoSnakeCase(camelCase) === name ? camelCase : undefined;
}

/** Whether a key in lowerCamelCase can only mean the key in snake_case, as standard clients send it. */
function isSentAs(map: DescField, key: string, value: JsonObject): boolean {
  const pairs = value[map.jsonName] ?? value[map.name];
  return (
    !key.includes("_") &&
    isObject(pairs) &&
    Object.hasOwn(pairs, protoSnakeCase(key)) &&
    !Object.hasOwn(pairs, key)
  );
}

function describeKey(map: DescField, path: string, key: string): string {
  const meaning = key.includes("_")
    ? ""
    : `, where it stands for ${pathOfKey(map, protoSnakeCase(key))}`;
  return `cannot name ${JSON.stringify(path)} in JSON${meaning}: name ${map.name}, or use PATCH over REST`;
}

import { type DescMethod, type DescMethodUnary, getOption, hasOption } from "@bufbuild/protobuf";
import { http } from "../../../gen/google/api/annotations_pb.js";
import { statusOf } from "../../contract/methods.js";

/** What a request is for: a route with the fields found in its path, or the verbs that its path knows. */
type Match<T> =
  | { readonly route: T; readonly fields: Readonly<Record<string, string>> }
  | { readonly allow: readonly string[] };

interface Node<T> {
  readonly literals: Map<string, Node<T>>;
  field?: { readonly name: string; readonly node: Node<T> };
  readonly routes: Map<string, T>;
}

interface Router<T> {
  /** Adds a route; two for the same verb and path throw. */
  add(verb: string, segments: readonly Segment[], route: T): void;

  /** Finds what is at a path. A literal segment wins over a field. */
  match(verb: string, path: readonly string[]): Match<T> | undefined;
}

export function createRouter<T>(): Router<T> {
  const root = createNode<T>();
  return {
    add(verb, segments, route) {
      const node = segments.reduce(childFor, root);
      if (node.routes.has(verb)) {
        throw new Error(`two methods are bound to ${verb} /${segments.map(textOf).join("/")}`);
      }
      node.routes.set(verb, route);
    },

    match(verb, path) {
      const fields: Record<string, string> = {};
      const node = walk(root, path, 0, fields);
      if (!node) {
        return undefined;
      }
      const route = node.routes.get(verb);
      return route === undefined ? { allow: [...node.routes.keys()] } : { route, fields };
    },
  };
}

function createNode<T>(): Node<T> {
  return { literals: new Map(), routes: new Map() };
}

function childFor<T>(node: Node<T>, segment: Segment): Node<T> {
  if ("literal" in segment) {
    const child = node.literals.get(segment.literal) ?? createNode<T>();
    node.literals.set(segment.literal, child);
    return child;
  }
  node.field ??= { name: segment.field, node: createNode<T>() };
  if (node.field.name !== segment.field) {
    throw new Error(`a path segment is both {${node.field.name}} and {${segment.field}}`);
  }
  return node.field.node;
}

/** Goes down the tree as far as the path, trying literals first, and notes the fields on the way. */
function walk<T>(
  node: Node<T>,
  path: readonly string[],
  depth: number,
  fields: Record<string, string>,
): Node<T> | undefined {
  const segment = path[depth];
  if (segment === undefined) {
    return node.routes.size > 0 ? node : undefined;
  }
  const literal = node.literals.get(segment);
  const found = literal && walk(literal, path, depth + 1, fields);
  if (found || !node.field || segment === "") {
    return found;
  }
  fields[node.field.name] = segment;
  return walk(node.field.node, path, depth + 1, fields);
}

function textOf(segment: Segment): string {
  return "literal" in segment ? segment.literal : `{${segment.field}}`;
}

/** A part of a path: a fixed text, or the place of a field of the request. */
type Segment = { readonly literal: string } | { readonly field: string };

/**
 * Parses the path of a REST binding:
 *
 *     template = "/" segment { "/" segment }
 *     segment  = literal | "{" field "}"
 *     literal  = letters, digits, "-", "_" or "."
 *     field    = the proto name of a field
 *
 * Anything else throws: a mistake in a proto must show when the server starts.
 */
export function parseTemplate(template: string): Segment[] {
  if (!template.startsWith("/")) {
    throw new Error(`the path "${template}" must start with a slash`);
  }
  return template
    .slice(1)
    .split("/")
    .map((part) => {
      const field = /^\{([a-z][a-z0-9_]*)\}$/.exec(part)?.[1];
      if (field !== undefined) {
        return { field };
      }
      if (/^[A-Za-z0-9_.-]+$/.test(part)) {
        return { literal: part };
      }
      throw new Error(
        `the path "${template}" has the part "${part}", which is no word and no {field}`,
      );
    });
}

/** The segments of a requested path, decoded; a trailing slash adds none. `undefined` where it is no path. */
export function splitPath(path: string): string[] | undefined {
  const trimmed = path.length > 1 && path.endsWith("/") ? path.slice(0, -1) : path;
  if (!trimmed.startsWith("/")) {
    return undefined;
  }
  const parts = trimmed.slice(1).split("/");
  if (!path.includes("%")) {
    return parts;
  }
  try {
    return parts.map(decodeURIComponent);
  } catch {
    return undefined;
  }
}

/** Where a method is served over REST, as its proto says. */
export interface Binding {
  readonly method: DescMethodUnary;
  readonly verb: string;
  readonly segments: readonly Segment[];
  /** Whether the fields that are not in the path come from the body, and not from the query. */
  readonly hasBody: boolean;
  /** The status of a successful answer. */
  readonly status: number;
}

/** Reads the binding of a method, if it has one. A binding that cannot be served throws. */
export function readBinding(method: DescMethod): Binding | undefined {
  if (!hasOption(method, http)) {
    return undefined;
  }
  const { pattern, body } = getOption(method, http);
  if (method.methodKind !== "unary" || pattern.case === undefined || !["", "*"].includes(body)) {
    throw new Error(`${method} has a REST binding that cannot be served`);
  }
  return {
    method: method as DescMethodUnary,
    verb: pattern.case.toUpperCase(),
    segments: parseTemplate(pattern.value),
    hasBody: body === "*",
    status: statusOf(method),
  };
}

import type { Segment } from "./template.js";

/** What a request is for: a route with the fields found in its path, or the verbs that its path knows. */
export type Match<T> =
  | { readonly route: T; readonly fields: Readonly<Record<string, string>> }
  | { readonly allow: readonly string[] };

interface Node<T> {
  readonly literals: Map<string, Node<T>>;
  field?: { readonly name: string; readonly node: Node<T> };
  readonly routes: Map<string, T>;
}

export interface Router<T> {
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

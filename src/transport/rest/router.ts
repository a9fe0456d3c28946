/** The result of a match: a route with the fields in its path, or the verbs that the path allows. */
type Match<T> =
  | { readonly route: T; readonly fields: Readonly<Record<string, string>> }
  | { readonly allow: readonly string[] };

interface Node<T> {
  readonly literals: Map<string, Node<T>>;
  field?: { readonly name: string; readonly node: Node<T> };
  readonly routes: Map<string, T>;
}

interface Router<T> {
  /** Adds a route. Throws if the verb and path are taken. */
  add(verb: string, segments: readonly Segment[], route: T): void;

  /** Finds the route of a path. Literal segments take precedence over fields. */
  match(verb: string, path: readonly string[]): Match<T> | undefined;
}

export function createRouter<T>(): Router<T> {
  const root = createNode<T>();
  return {
    add(verb, segments, route) {
      const node = segments.reduce(getOrAddChild, root);
      if (node.routes.has(verb)) {
        throw new Error(`two methods are bound to ${verb} /${segments.map(textOf).join("/")}`);
      }
      node.routes.set(verb, route);
    },

    match(verb, path) {
      const fields: Record<string, string> = {};
      const node = findNode(root, path, 0, fields);
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

function getOrAddChild<T>(node: Node<T>, segment: Segment): Node<T> {
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

/** Finds the node of a path, literals first, and collects its fields. */
function findNode<T>(
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
  const found = literal && findNode(literal, path, depth + 1, fields);
  if (found || !node.field || segment === "") {
    return found;
  }
  fields[node.field.name] = segment;
  return findNode(node.field.node, path, depth + 1, fields);
}

function textOf(segment: Segment): string {
  return "literal" in segment ? segment.literal : `{${segment.field}}`;
}

/** A segment of a path: literal text, or a field of the request. */
export type Segment = { readonly literal: string } | { readonly field: string };

/**
 * Parses the path template of a REST binding:
 *
 *     template = "/" segment { "/" segment }
 *     segment  = literal | "{" field "}"
 *     literal  = letters, digits, "-", "_" or "."
 *     field    = the proto name of a field
 *
 * Throws on anything else, so that a mistake in a proto fails at startup.
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
        `the path "${template}" has the segment "${part}", which is neither a literal nor a {field}`,
      );
    });
}

/** The decoded segments of a request path, without a trailing slash. `undefined` if it is not a valid path. */
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

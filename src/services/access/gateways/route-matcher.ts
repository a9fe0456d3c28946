import type { GatewayRoute } from "../../../../gen/latchkey/v1/gateway_service_pb.js";

/** The request of a client, as its gateway describes it. */
export interface RoutedRequest {
  /** With or without a port. */
  readonly host: string;
  readonly method: string;
  /** With or without a query. */
  readonly path: string;
}

/** The permission and token that a request requires. */
export interface Requirement {
  readonly permission: string;
  readonly container?: string | undefined;
  readonly tokenId?: string | undefined;
}

/** Returns the requirement of a request, or `undefined` if no route matches it. */
export type MatchRoute = (request: RoutedRequest) => Requirement | undefined;

/** Compiles routes. The first one that matches a request decides. Throws if a route is not valid. */
export function compileRoutes(routes: readonly GatewayRoute[]): MatchRoute {
  const compiled = routes.map((route, index) => {
    try {
      return compileRoute(route);
    } catch (error) {
      throw new Error(`routes[${index}].${(error as Error).message}`);
    }
  });
  return ({ host, method, path }) => {
    const segments = splitPath(path);
    const hostName = readHost(host);
    // A request that is not described completely could skip a route.
    if (!segments || hostName === undefined || !/^[A-Z][A-Z-]*$/.test(method)) {
      return undefined;
    }
    for (const match of compiled) {
      const requirement = match(hostName, method, segments);
      if (requirement) {
        return requirement;
      }
    }
    return undefined;
  };
}

type MatchOne = (
  host: string,
  method: string,
  segments: readonly string[],
) => Requirement | undefined;

function compileRoute(route: GatewayRoute): MatchOne {
  const { permission } = route;
  const matchesHost = compileHost(route.host?.toLowerCase());
  const methods = new Set(route.methods);
  const pattern = compilePath(route.path);
  const container = compileTemplate("container", route.container, pattern.names);
  const tokenId = compileTemplate("token_id", route.tokenId, pattern.names);
  return (host, method, segments) => {
    if (!matchesHost(host) || (methods.size > 0 && !methods.has(method))) {
      return undefined;
    }
    const values = pattern.match(segments);
    return values && { permission, container: container(values), tokenId: tokenId(values) };
  };
}

function compileHost(pattern: string | undefined): (host: string) => boolean {
  if (pattern === undefined) {
    return () => true;
  }
  return pattern.startsWith("*.")
    ? (host) => host.endsWith(pattern.slice(1)) && host.length >= pattern.length
    : (host) => host === pattern;
}

/** The values of the named segments of a path. */
type PathValues = Readonly<Record<string, string>>;

interface PathPattern {
  readonly names: ReadonlySet<string>;
  match(segments: readonly string[]): PathValues | undefined;
}

type PatternPart = { readonly literal: string } | { readonly name: string };

const namedSegment = /^\{([a-z][a-z0-9_]*)(\.\.\.)?\}$/;

function compilePath(path: string): PathPattern {
  const parts: PatternPart[] = [];
  const names = new Set<string>();
  let restName: string | undefined;
  for (const part of path.replace(/^\//, "").replace(/\/$/, "").split("/")) {
    const [, name, isRest] = namedSegment.exec(part) ?? [];
    if (restName !== undefined) {
      throw new Error(`path: {${restName}...} must be the last segment`);
    }
    if (name === undefined) {
      parts.push({ literal: checkLiteral(part, path) });
      continue;
    }
    if (names.has(name)) {
      throw new Error(`path: names {${name}} twice`);
    }
    names.add(name);
    if (isRest) {
      restName = name;
    } else {
      parts.push({ name });
    }
  }
  return { names, match: (segments) => matchPath(parts, restName, segments) };
}

function checkLiteral(part: string, path: string): string {
  if (/[{}*%?#;\\]/.test(part) || /^\.{1,2}$/.test(part) || (part === "" && path !== "/")) {
    throw new Error(
      `path: has the segment "${part}", which is neither plain text nor a {name}. ` +
        "Write special characters as they are after percent-decoding",
    );
  }
  return part;
}

function matchPath(
  parts: readonly PatternPart[],
  restName: string | undefined,
  segments: readonly string[],
): PathValues | undefined {
  const isLongEnough =
    restName === undefined ? segments.length === parts.length : segments.length >= parts.length;
  if (!isLongEnough) {
    return undefined;
  }
  const values: Record<string, string> = {};
  for (const [index, part] of parts.entries()) {
    const segment = segments[index] as string;
    if ("name" in part) {
      if (segment === "") {
        return undefined;
      }
      values[part.name] = segment;
    } else if (part.literal !== segment) {
      return undefined;
    }
  }
  if (restName !== undefined) {
    values[restName] = segments.slice(parts.length).join("/");
  }
  return values;
}

/** Compiles a text that may name segments of the path in braces. */
function compileTemplate(
  field: string,
  template: string | undefined,
  names: ReadonlySet<string>,
): (values: PathValues) => string | undefined {
  if (template === undefined) {
    return () => undefined;
  }
  for (const [brace, name] of template.matchAll(/\{([^{}]*)\}?|\}/g)) {
    if (name === undefined || !brace.endsWith("}") || !names.has(name)) {
      throw new Error(`${field}: ${brace} is not a named segment of the path`);
    }
  }
  return (values) => template.replaceAll(/\{(\w+)\}/g, (_, name) => values[name] as string);
}

/**
 * Reads the name of a host, without its port and the dot at the end. Returns
 * `undefined` for a text that an upstream could read as another host: with user
 * information, brackets, empty labels or other characters than those of names.
 */
function readHost(text: string): string | undefined {
  const name = text.replace(/:\d*$/, "").replace(/\.$/, "");
  return /^[a-z0-9_-]+(\.[a-z0-9_-]+)*$/i.test(name) ? name.toLowerCase() : undefined;
}

/**
 * Splits the path of a request into decoded segments, without the query and a
 * slash at the end. Returns `undefined` for a path that an upstream could read as
 * another one: with a fragment, empty, `.` or `..` segments, segments that end in a
 * dot or a space, encoded slashes, backslashes, semicolons, control characters,
 * characters that are encoded twice, or other characters that are not encoded.
 */
function splitPath(target: string): string[] | undefined {
  const path = target.replace(/\?.*$/s, "");
  if (!path.startsWith("/") || /%(2f|5c|00|25)|[\\#\u0080-\uffff]/i.test(path)) {
    return undefined;
  }
  try {
    const segments = decodeURIComponent(path).slice(1).replace(/\/$/, "").split("/");
    return segments.every(isPlain) || path === "/" ? segments : undefined;
  } catch {
    return undefined;
  }
}

/** Some servers ignore the text after a semicolon, or dots and spaces at the end. */
function isPlain(segment: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are refused
  return !/^$|[. ]$|[;\u0000-\u001f\u007f]/.test(segment);
}

import type { ConditionRecord, RuleRecord } from "../grants.js";

/** The attributes of a token that rules compare. A token is a vaulted data item, not a credential. */
export interface Token {
  readonly id?: string | undefined;
  readonly container?: string | undefined;
}

/** Matches strings that equal the value, or start with it. */
export interface StringMatcher {
  readonly value: string;
  readonly exact: boolean;
}

/**
 * The tokens that a rule matches. All constraints on an attribute are merged
 * into one matcher, which a token without the attribute does not match.
 * Attributes without a matcher can have any value or be absent.
 */
export interface Scope {
  readonly id?: StringMatcher;
  readonly container?: StringMatcher;
  /** Whether it matches only requests that name a token. */
  readonly tokensOnly: boolean;
}

/** The scope of a rule. `undefined` if no token can meet its conditions. */
export function scopeOf({
  container,
  conditions,
}: Pick<RuleRecord, "container" | "conditions">): Scope | undefined {
  let scope: Scope | undefined =
    container === undefined ? { tokensOnly: false } : everythingIn(withSlashes(container));
  for (const condition of conditions) {
    scope = scope && narrow(scope, condition);
  }
  return scope;
}

/** Whether a scope matches a token, or a request without one. */
export function covers({ id, container, tokensOnly }: Scope, token: Token | undefined): boolean {
  if (!token) {
    return !tokensOnly;
  }
  if (id && (token.id === undefined || !matches(token.id, id))) {
    return false;
  }
  return (
    !container ||
    (token.container !== undefined && matches(withSlashes(token.container), container))
  );
}

/** Adds the optional leading and trailing slashes to a container. */
export function withSlashes(container: string): string {
  const path = withLeadingSlash(container);
  return path.endsWith("/") ? path : `${path}/`;
}

function withLeadingSlash(path: string): string {
  return path.startsWith("/") ? path : `/${path}`;
}

/** A token without a container counts as one in `/`, so `/` needs no matcher. */
function everythingIn(path: string): Scope {
  return path === "/"
    ? { tokensOnly: true }
    : { tokensOnly: true, container: { value: path, exact: false } };
}

function narrow(scope: Scope, { attribute, operator, value }: ConditionRecord): Scope | undefined {
  const exact = operator === "equals";
  if (!exact && operator !== "starts_with") {
    return undefined;
  }
  switch (attribute) {
    case "id": {
      const id = intersect(scope.id, { value, exact });
      return id && { ...scope, id, tokensOnly: true };
    }
    case "container": {
      // A prefix may end inside a segment.
      const path = exact ? withSlashes(value) : withLeadingSlash(value);
      const container = intersect(scope.container, { value: path, exact });
      return container && { ...scope, container, tokensOnly: true };
    }
    default:
      return undefined;
  }
}

/** The narrower of two matchers, or `undefined` if they exclude each other. */
function intersect(
  one: StringMatcher | undefined,
  other: StringMatcher,
): StringMatcher | undefined {
  if (!one) {
    return other;
  }
  const oneIsNarrower = one.exact || (!other.exact && one.value.length > other.value.length);
  const [narrower, wider] = oneIsNarrower ? [one, other] : [other, one];
  return matches(narrower.value, wider) ? narrower : undefined;
}

function matches(value: string, matcher: StringMatcher): boolean {
  return matcher.exact ? value === matcher.value : value.startsWith(matcher.value);
}

import type { ConditionRecord, RuleRecord } from "../grants.js";

/** What rules look at in a token. */
export interface Token {
  readonly id?: string | undefined;
  readonly container?: string | undefined;
}

/** What a rule asks of an attribute: that it is this value, or starts with it. */
export interface Limit {
  readonly value: string;
  readonly exact: boolean;
}

/**
 * What a rule is about. All that it asks of an attribute is drawn together into
 * one limit, which a token without the attribute does not meet; an attribute
 * without a limit may be anything, or absent.
 */
export interface Scope {
  readonly id?: Limit;
  readonly container?: Limit;
  /** Whether it is about tokens only, and not also about what concerns none. */
  readonly tokensOnly: boolean;
}

/** What a rule is about, or `undefined` where nothing can meet its conditions. */
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

/** Whether a scope is about a token, or about what concerns none. */
export function covers({ id, container, tokensOnly }: Scope, token: Token | undefined): boolean {
  if (!token) {
    return !tokensOnly;
  }
  if (id && (token.id === undefined || !meets(token.id, id))) {
    return false;
  }
  return (
    !container || (token.container !== undefined && meets(withSlashes(token.container), container))
  );
}

/** Whether all that one scope is about, another is about too. */
export function isWithin(inner: Scope, outer: Scope): boolean {
  return (
    (inner.tokensOnly || !outer.tokensOnly) &&
    isNarrower(inner.id, outer.id) &&
    isNarrower(inner.container, outer.container)
  );
}

/** Whether there can be something that both scopes are about. */
export function doOverlap(one: Scope, other: Scope): boolean {
  return canMeetBoth(one.id, other.id) && canMeetBoth(one.container, other.container);
}

/** A container with the slashes that may be left out. */
export function withSlashes(container: string): string {
  const path = withLeadingSlash(container);
  return path.endsWith("/") ? path : `${path}/`;
}

function withLeadingSlash(path: string): string {
  return path.startsWith("/") ? path : `/${path}`;
}

/** A token without a container counts as one in `/`, so that `/` asks nothing of the attribute. */
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
      const id = bothOf(scope.id, { value, exact });
      return id && { ...scope, id, tokensOnly: true };
    }
    case "container": {
      // What a container starts with may end inside of a segment.
      const path = exact ? withSlashes(value) : withLeadingSlash(value);
      const container = bothOf(scope.container, { value: path, exact });
      return container && { ...scope, container, tokensOnly: true };
    }
    default:
      return undefined;
  }
}

/** The limit that asks what both ask, which is always one of them, or `undefined` if they exclude each other. */
function bothOf(one: Limit | undefined, other: Limit): Limit | undefined {
  if (!one) {
    return other;
  }
  const oneIsNarrower = one.exact || (!other.exact && one.value.length > other.value.length);
  const [narrower, wider] = oneIsNarrower ? [one, other] : [other, one];
  return meets(narrower.value, wider) ? narrower : undefined;
}

function isNarrower(inner: Limit | undefined, outer: Limit | undefined): boolean {
  if (!outer) {
    return true;
  }
  return inner !== undefined && (inner.exact || !outer.exact) && meets(inner.value, outer);
}

function canMeetBoth(one: Limit | undefined, other: Limit | undefined): boolean {
  return !one || !other || bothOf(one, other) !== undefined;
}

function meets(value: string, limit: Limit): boolean {
  return limit.exact ? value === limit.value : value.startsWith(limit.value);
}

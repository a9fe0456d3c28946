/** Web origins and wildcards for them. `URLPattern` would do it, but Node 20 and 22 do not have it as a global. */

/** The origin of a URL as browsers send it, or `undefined` for text that is not a URL. */
function originOf(address: string): string | undefined {
  return URL.canParse(address) ? new URL(address).origin : undefined;
}

/** A wildcard as the leftmost label, followed by at least two labels. */
const wildcardOrigin = /^https?:\/\/\*(?:\.[^.*:]+){2,}(?::\d+)?$/;

/** The labels that a wildcard matches. */
const labels = /^[a-z0-9_-]+(?:\.[a-z0-9_-]+)*$/;

/** Why a text is not a valid allowed origin, or `undefined` if it is valid. */
export function findOriginProblem(text: string): string | undefined {
  const normalized = originOf(text);
  if (normalized === undefined || normalized === "null") {
    return "must be a web origin, for example https://app.example.com";
  }
  if (text.includes("*") && !wildcardOrigin.test(text)) {
    return (
      "may have a wildcard only as its leftmost label, followed by at least two labels, " +
      "for example https://*.shop.example"
    );
  }
  return normalized === text ? undefined : `must be written as browsers send it: ${normalized}`;
}

/** Whether an origin matches the allow list. A wildcard matches one or more labels. */
export function isAllowedOrigin(allowed: readonly string[], origin: string): boolean {
  return allowed.some((pattern) =>
    pattern.includes("*") ? matchesWildcard(pattern, origin) : pattern === origin,
  );
}

/** Whether the allow list matches every origin that a pattern matches. */
export function coversOrigin(allowed: readonly string[], pattern: string): boolean {
  // What matches a wildcard with one label matches it with any others.
  return (
    allowed.includes(pattern) ||
    (pattern.includes("*")
      ? allowed.some(
          (each) => each.includes("*") && matchesWildcard(each, pattern.replace("*", "x")),
        )
      : isAllowedOrigin(allowed, pattern))
  );
}

function matchesWildcard(pattern: string, origin: string): boolean {
  const [scheme = "", suffix = ""] = pattern.split("*");
  return (
    origin.length > scheme.length + suffix.length &&
    origin.startsWith(scheme) &&
    origin.endsWith(suffix) &&
    labels.test(origin.slice(scheme.length, -suffix.length))
  );
}

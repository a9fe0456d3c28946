/** The origin of a web address as browsers send it, or `undefined` where the text is no such address. */
function originOf(address: string): string | undefined {
  return URL.canParse(address) ? new URL(address).origin : undefined;
}

/** A wildcard in place of the leftmost label, with two labels or more behind it. */
const wildcardOrigin = /^https?:\/\/\*(?:\.[^.*:]+){2,}(?::\d+)?$/;

/** What stands in the place of a wildcard: labels, as browsers write them. */
const labels = /^[a-z0-9_-]+(?:\.[a-z0-9_-]+)*$/;

/** What is wrong with a text as an origin that is allowed, which may have a wildcard, or `undefined`. */
export function faultInOrigin(text: string): string | undefined {
  const sent = originOf(text);
  if (sent === undefined || sent === "null") {
    return "is no origin that a browser could send";
  }
  if (text.includes("*") && !wildcardOrigin.test(text)) {
    return (
      "may have a wildcard only in place of its leftmost label, with at least two labels " +
      "behind it: https://*.shop.example"
    );
  }
  return sent === text ? undefined : `is sent by browsers as ${sent}: write it so`;
}

/** Whether an origin is one of those that are allowed. A wildcard stands for one label or more. */
export function isAllowedOrigin(allowed: readonly string[], origin: string): boolean {
  return allowed.some((one) => (one.includes("*") ? matchesWildcard(one, origin) : one === origin));
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

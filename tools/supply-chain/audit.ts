export type AuditResult =
  | { readonly passed: string }
  | { readonly failed: readonly string[] }
  /** The registry did not respond, so nothing is known about the packages. */
  | { readonly unreachable: string };

interface Vulnerability {
  readonly name: string;
  readonly severity: string;
  readonly via: readonly (string | { readonly title: string; readonly url: string })[];
}

const failingSeverities = ["high", "critical"];

/** Parses the output of `npm audit --json`. */
export function parseAudit(report: string): AuditResult {
  const { vulnerabilities, ...rest } = parse(report);
  if (!vulnerabilities || !rest.metadata) {
    return { unreachable: getReason(rest) };
  }
  const all = Object.values(vulnerabilities as Record<string, Vulnerability>);
  const severe = all.filter(({ severity }) => failingSeverities.includes(severity));
  return severe.length > 0
    ? { failed: severe.map(describe) }
    : { passed: `no high or critical vulnerabilities, ${all.length} of lower severity` };
}

function describe({ name, severity, via }: Vulnerability): string {
  const causes = via.map((cause) =>
    typeof cause === "string" ? cause : `${cause.title} (${cause.url})`,
  );
  return `${name}: ${severity}, via ${causes.join(", ")}`;
}

/** Parses the output of `npm audit signatures --json`. */
export function parseSignatures(report: string): AuditResult {
  const { invalid, missing, ...rest } = parse(report);
  if (!Array.isArray(invalid) || !Array.isArray(missing)) {
    return { unreachable: getReason(rest) };
  }
  const problems = [
    ...invalid.map(({ name, version }) => `${name}@${version} has an invalid signature`),
    ...missing.map(({ name, version }) => `${name}@${version} has no signature`),
  ];
  return problems.length > 0 ? { failed: problems } : { passed: "all signatures are valid" };
}

function parse(report: string): Record<string, unknown> {
  try {
    return JSON.parse(report) ?? {};
  } catch {
    return {};
  }
}

/** Removes URLs, which may name a private registry. */
function getReason({ message, error }: Record<string, unknown>): string {
  const { summary } = (error ?? {}) as { summary?: string };
  const reason = [message, summary].find((text) => typeof text === "string" && text !== "");
  return String(reason ?? "npm returned no readable output").replaceAll(/https?:\/\/\S+/g, "…");
}

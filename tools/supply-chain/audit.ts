/** What an audit came to. */
export type Verdict =
  | { readonly passed: string }
  | { readonly failed: readonly string[] }
  /** Nobody answered, which says nothing about the packages. */
  | { readonly unanswered: string };

interface Vulnerability {
  readonly name: string;
  readonly severity: string;
  readonly via: readonly (string | { readonly title: string; readonly url: string })[];
}

const graveOnes = ["high", "critical"];

/** Reads what `npm audit --json` says. */
export function auditVerdict(report: string): Verdict {
  const { vulnerabilities, ...rest } = parse(report);
  if (!vulnerabilities || !rest.metadata) {
    return { unanswered: reasonIn(rest) };
  }
  const found = Object.values(vulnerabilities as Record<string, Vulnerability>);
  const grave = found.filter(({ severity }) => graveOnes.includes(severity));
  return grave.length > 0
    ? { failed: grave.map(describe) }
    : { passed: `no high or critical finding, ${found.length} of less` };
}

function describe({ name, severity, via }: Vulnerability): string {
  const why = via.map((one) => (typeof one === "string" ? one : `${one.title} (${one.url})`));
  return `${name}: ${severity}, by ${why.join(", ")}`;
}

/** Reads what `npm audit signatures --json` says. */
export function signaturesVerdict(report: string): Verdict {
  const { invalid, missing, ...rest } = parse(report);
  if (!Array.isArray(invalid) || !Array.isArray(missing)) {
    return { unanswered: reasonIn(rest) };
  }
  const faults = [
    ...invalid.map(({ name, version }) => `${name}@${version} has a signature that is wrong`),
    ...missing.map(({ name, version }) => `${name}@${version} has no signature`),
  ];
  return faults.length > 0 ? { failed: faults } : { passed: "all signatures are right" };
}

function parse(report: string): Record<string, unknown> {
  try {
    return JSON.parse(report) ?? {};
  } catch {
    return {};
  }
}

/** Why there was no answer. Addresses are left out: they are those of whoever runs this. */
function reasonIn({ message, error }: Record<string, unknown>): string {
  const { summary } = (error ?? {}) as { summary?: string };
  const reason = [message, summary].find((text) => typeof text === "string" && text !== "");
  return String(reason ?? "npm said nothing that can be read").replaceAll(/https?:\/\/\S+/g, "…");
}

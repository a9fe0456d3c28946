/** The labels of the forms, by field name of the service. */
const labels: Readonly<Record<string, string>> = {
  address: "Address",
  allowed_cidrs: "Networks",
  allowed_origins: "Origins",
  attribute: "Attribute",
  conditions: "Conditions",
  container: "Container",
  description: "Description",
  expires_at: "Expires",
  grace_period: "Grace period",
  id: "Id",
  key: "Key",
  name: "Name",
  nonce: "Nonce",
  operator: "Operator",
  origin: "Origin",
  permission: "Permission",
  permissions: "Permissions",
  priority: "Priority",
  rules: "Rules",
  session_quota: "Session quota",
  token: "Token",
  transform: "Transform",
  type: "Type",
  value: "Value",
};

/** Shown for the one constraint on whole requests: they must grant something. */
export const grantRequired = "Add at least one permission or rule.";

/** `Rules › Container: must be a path`. */
export function describeErrors(path: string, messages: readonly string[]): string {
  return path === "request" ? grantRequired : `${labelOf(path)}: ${messages.join(", ")}`;
}

function labelOf(path: string): string {
  return path
    .split(".")
    .map((segment) => segment.replace(/\[\d+\]$/, ""))
    .map((name) => labels[name] ?? name)
    .join(" › ");
}

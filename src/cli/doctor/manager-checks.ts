import type { ManagerEnd } from "../../store/managers.js";
import { type Finding, ok, warn } from "./finding.js";

/** How many tenants are named. */
const mostNamed = 10;

/** Judges when tenants lose their last manager, where that is known. */
export function checkManagers(ends: readonly ManagerEnd[] | undefined): Finding[] {
  if (ends === undefined) {
    return [];
  }
  if (ends.length === 0) {
    return [ok("managers", "no tenant's last manager expires")];
  }
  const soonest = [...ends].sort((one, other) => one.at - other.at);
  const findings = soonest
    .slice(0, mostNamed)
    .map(({ tenantId, at }) =>
      warn(
        "managers",
        `the last application of tenant ${tenantId} that can create and update applications expires at ${new Date(at).toISOString()}`,
        "Create another one that holds application:create and application:update, and does not expire.",
      ),
    );
  const unnamed = ends.length - findings.length;
  return unnamed === 0
    ? findings
    : [
        ...findings,
        warn(
          "managers",
          `the last manager expires in ${unnamed} more ${unnamed === 1 ? "tenant" : "tenants"}`,
          "Create another one in each of them.",
        ),
      ];
}

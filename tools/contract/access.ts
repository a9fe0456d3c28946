import type { DescMethod } from "@bufbuild/protobuf";
import type { Contract } from "./contract.js";
import { formatList } from "./prose.js";

/** Describes who may call a method. */
export function describeAccess(contract: Contract, method: DescMethod): string {
  const { permission, callers, acceptsAuthorization, unauthenticated, allowsOwnSession } =
    contract.access(method);
  if (unauthenticated) {
    return "Needs no key.";
  }
  const places = acceptsAuthorization
    ? " `Authorization` may carry the key, as a bearer token or as the password of `Basic`."
    : "";
  const needs: string[] = [];
  if (callers.length > 0) {
    needs.push(`the key of ${oneOf(callers)}`);
  }
  if (permission) {
    const holders = formatList(
      getHolders(contract, method, permission).map(toPlural),
      "conjunction",
    );
    const only = holders && `, which only ${holders} can hold`;
    needs.push(`the permission \`${permission}\`${only}`);
  }
  const required =
    needs.length > 0 ? `Requires ${needs.join(" and ")}.` : "Any valid key is accepted.";
  const own = allowsOwnSession ? " A session needs no permission for itself." : "";
  return required + own + places;
}

/** The types of caller that are allowed and can hold the permission. Empty if no key is required. */
export function getCallers(contract: Contract, method: DescMethod): string[] {
  const { permission, callers, unauthenticated } = contract.access(method);
  if (unauthenticated) {
    return [];
  }
  const holders = permission ? getHolders(contract, method, permission) : [];
  return contract.callerTypes.filter(
    (type) =>
      (callers.length === 0 || callers.includes(type)) &&
      (holders.length === 0 || holders.includes(type)),
  );
}

/** An example of the error for a caller that may not call the method. */
export function createRefusalExample(contract: Contract, method: DescMethod): string {
  const { permission, callers } = contract.access(method);
  const type = contract.callerTypes.find((name) => callers.length === 0 || !callers.includes(name));
  const caller = `the ${type} application "Storefront" (0198c8a1-3c5e-7f70-8a92-b4c6d8e0f213)`;
  return callers.length > 0
    ? `This method requires the key of ${oneOf(callers)}, but yours belongs to ${caller}.`
    : `This method requires the permission ${permission}, but ${caller} does not hold it: grant it, or use another key.`;
}

/** The types of caller that may hold a permission. Empty means every type. */
function getHolders(contract: Contract, method: DescMethod, permission: string): readonly string[] {
  const services = [...contract.registry].filter((type) => type.kind === "service");
  const declared = services
    .flatMap((service) => contract.permissions(service))
    .find(({ name }) => name === permission);
  if (!declared) {
    throw new Error(`${method} requires ${permission}, which no service declares`);
  }
  return declared.holders;
}

function toPlural(type: string): string {
  return type === "session" ? "sessions" : `${type} applications`;
}

function oneOf(callers: readonly string[]): string {
  const labels = callers.map((type) => (type === "session" ? type : `${type} application`));
  return `a ${formatList(labels, "disjunction")}`;
}

import type * as decisions from "../../../src/contract/decisions/decide.js";
import type { RuleRecord } from "../../../src/contract/grants.js";
import type { Instance } from "../../context.js";
import type { Load, LoadRequest } from "../../load/load.js";
import { addressOf, loadBuilt } from "../../servers.js";

/** As many keys as concurrent checks, because concurrent checks of one key could share a lookup. */
export const concurrency = 8;

/** Creates applications or sessions with the rules, and a load that checks their keys. */
export async function prepareChecks(
  instance: Instance,
  set: RuleSet,
  count: 1 | typeof manyRules,
): Promise<Load> {
  const createKey = set.isForSessions ? createSession : createApplication;
  const requests: LoadRequest[] = [];
  while (requests.length < concurrency) {
    const key = await createKey(instance, createRules(set, count));
    const request = { key, permission, token: set.token };
    const { allowed } = await post(instance, instance.keys.checking, "/access/check", request);
    if (!allowed) {
      throw new Error(`the rules with ${set.name} must allow the check`);
    }
    requests.push({ key: instance.keys.checking, body: JSON.stringify(request) });
  }
  return {
    protocol: "http1",
    port: instance.server.port,
    connections: concurrency,
    verb: "POST",
    path: "/access/check",
    status: 200,
    requests,
  };
}

async function createApplication(
  instance: Instance,
  rules: readonly RuleRecord[],
): Promise<string> {
  const application = { name: "Many rules", type: "private", permissions: [], rules };
  const { key } = await post(instance, instance.keys.management, "/applications", application);
  return key;
}

async function createSession(instance: Instance, rules: readonly RuleRecord[]): Promise<string> {
  const { keys } = instance;
  const { session_key: key, nonce } = await post(instance, keys.public, "/sessions", {});
  await post(instance, keys.private[0]?.key ?? "", "/sessions/authorize", { nonce, rules });
  return key;
}

async function post({ server }: Instance, key: string, path: string, body: object) {
  const response = await fetch(`${addressOf(server)}${path}`, {
    method: "POST",
    headers: { "SVC-API-KEY": key, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok) {
    throw new Error(`POST ${path} returned ${response.status} ${text.slice(0, 500)}`);
  }
  return text === "" ? {} : JSON.parse(text);
}

/** Measures the CPU time of a decision in microseconds. */
type MeasureDecision = (set: RuleSet, count: 1 | typeof manyRules) => number;

/** Decisions are repeated for this CPU time in microseconds. */
const minCpuTime = 50_000;
const decisionsPerBatch = 500;

/** Runs the decision function of the service in this process. */
export async function createDecisionBenchmark(): Promise<MeasureDecision> {
  const { compileGrants, decide } = await loadBuilt<typeof decisions>(
    "contract/decisions/decide.js",
  );

  return (set, count) => {
    const grants = compileGrants({ permissions: [], rules: createRules(set, count) });
    let done = 0;
    let spent = 0;
    const before = process.cpuUsage();
    while (spent < minCpuTime) {
      for (let index = 0; index < decisionsPerBatch; index++) {
        if (!decide(grants, permission, set.token, false).allowed) {
          throw new Error(`the rules with ${set.name} must allow the check`);
        }
      }
      done += decisionsPerBatch;
      const { user, system } = process.cpuUsage(before);
      spent = user + system;
    }
    return spent / done;
  };
}

/** A set of rules that all list the checked permission. Only the last one matches the token. */
export interface RuleSet {
  readonly name: string;
  readonly token: { readonly id?: string; readonly container: string };
  /** Whether only sessions can have such rules. */
  readonly isForSessions: boolean;
  createRule(index: number): RuleRecord;
}

const permission = "token:read";

export const manyRules = 1_000;

/** Creates all rules of a set, or only the one that matches. */
function createRules({ createRule }: RuleSet, count: 1 | typeof manyRules): RuleRecord[] {
  return Array.from({ length: count }, (_, index) => createRule(manyRules - count + index));
}

const containers: RuleSet = {
  name: "containers",
  isForSessions: false,
  token: { container: `${containerAt(manyRules - 1)}cards/` },
  createRule: (index) => ({
    ...createBaseRule(index),
    container: containerAt(index),
    conditions: [],
  }),
};

const conditions: RuleSet = {
  name: "conditions on id and container",
  isForSessions: true,
  token: { id: `card-${manyRules - 1}-4242`, container: containerAt(manyRules - 1) },
  createRule: (index) => ({
    ...createBaseRule(index),
    conditions: [
      { attribute: "id", operator: "starts_with", value: `card-${index}-` },
      { attribute: "container", operator: "equals", value: containerAt(index) },
    ],
  }),
};

/** The maximum length of a condition value. */
const maxValueLength = 500;

/** The id matches the condition of every rule, so an index on it cannot skip any. */
const nested: RuleSet = {
  name: "conditions, each id a prefix of the next",
  isForSessions: true,
  token: { id: "4".repeat(maxValueLength), container: containerAt(manyRules - 1) },
  createRule: (index) => ({
    ...createBaseRule(index),
    conditions: [
      { attribute: "id", operator: "starts_with", value: "4".repeat(1 + (index % maxValueLength)) },
      { attribute: "container", operator: "equals", value: containerAt(index) },
    ],
  }),
};

export const ruleSets: readonly RuleSet[] = [containers, conditions, nested];

function containerAt(index: number): string {
  return `/pci/customer-${index}/`;
}

function createBaseRule(index: number) {
  return { priority: index + 1, transform: "mask", permissions: [permission] };
}

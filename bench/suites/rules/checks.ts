import type * as decisions from "../../../src/contract/decisions/decide.js";
import type { RuleRecord } from "../../../src/contract/grants.js";
import type { Subject } from "../../context.js";
import type { Load, LoadRequest } from "../../load/load.js";
import { addressOf, loadBuilt } from "../../servers.js";

/**
 * As many keys as checks at a time: those of the same key at the same time
 * could share a look-up, and with it what the rules cost.
 */
export const checksAtATime = 8;

/** Gives rules to new applications or sessions, and answers the load that checks their keys. */
export async function prepareChecks(
  subject: Subject,
  set: RuleSet,
  count: 1 | typeof manyRules,
  seconds: number,
): Promise<Load> {
  const makeKey = set.isOfSession ? makeSession : makeApplication;
  const requests: LoadRequest[] = [];
  while (requests.length < checksAtATime) {
    const key = await makeKey(subject, rulesOf(set, count));
    const question = { key, permission, token: set.token };
    const { allowed } = await post(subject, subject.keys.checking, "/access/check", question);
    if (!allowed) {
      throw new Error(`the rules with ${set.name} do not allow what they are to allow`);
    }
    requests.push({ key: subject.keys.checking, body: JSON.stringify(question) });
  }
  return {
    protocol: "http1",
    port: subject.server.port,
    connections: checksAtATime,
    seconds,
    verb: "POST",
    path: "/access/check",
    status: 200,
    requests,
  };
}

async function makeApplication(subject: Subject, rules: readonly RuleRecord[]): Promise<string> {
  const application = { name: "Many rules", type: "private", permissions: [], rules };
  const { key } = await post(subject, subject.keys.management, "/applications", application);
  return key;
}

async function makeSession(subject: Subject, rules: readonly RuleRecord[]): Promise<string> {
  const { keys } = subject;
  const { session_key: key, nonce } = await post(subject, keys.public, "/sessions", {});
  await post(subject, keys.private[0]?.key ?? "", "/sessions/authorize", { nonce, rules });
  return key;
}

async function post({ server }: Subject, key: string, path: string, body: object) {
  const response = await fetch(`${addressOf(server)}${path}`, {
    method: "POST",
    headers: { "SVC-API-KEY": key, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok) {
    throw new Error(`POST ${path} answered ${response.status} ${text.slice(0, 500)}`);
  }
  return text === "" ? {} : JSON.parse(text);
}

/** Microseconds of CPU time for a decision. */
type CostOfRules = (set: RuleSet, count: 1 | typeof manyRules) => number;

/** How long a decision is repeated, in microseconds of CPU time. */
const longEnough = 50_000;
const decisionsPerLook = 500;

/** Decides in this process, by the function that the service decides with. */
export async function loadCostOfDecisions(): Promise<CostOfRules> {
  const { compileGrants, decide } = await loadBuilt<typeof decisions>(
    "contract/decisions/decide.js",
  );

  return (set, count) => {
    const grants = compileGrants({ permissions: [], rules: rulesOf(set, count) });
    let done = 0;
    let spent = 0;
    const before = process.cpuUsage();
    while (spent < longEnough) {
      for (let at = 0; at < decisionsPerLook; at++) {
        if (!decide(grants, permission, set.token, false).allowed) {
          throw new Error(`the rules with ${set.name} do not allow what they are to allow`);
        }
      }
      done += decisionsPerLook;
      const { user, system } = process.cpuUsage(before);
      spent = user + system;
    }
    return spent / done;
  };
}

/** Rules of which all list the permission that is asked for, and only the last one matches the token. */
export interface RuleSet {
  readonly name: string;
  readonly token: { readonly id?: string; readonly container: string };
  /** Whether only sessions may have such rules. */
  readonly isOfSession: boolean;
  rule(place: number): RuleRecord;
}

export const permission = "token:read";

export const manyRules = 1_000;

/** The rules of a set: all of them, or only the one that matches. */
export function rulesOf({ rule }: RuleSet, count: 1 | typeof manyRules): RuleRecord[] {
  return Array.from({ length: count }, (_, at) => rule(manyRules - count + at));
}

const containers: RuleSet = {
  name: "containers",
  isOfSession: false,
  token: { container: `${containerAt(manyRules - 1)}cards/` },
  rule: (place) => ({ ...ruleAt(place), container: containerAt(place), conditions: [] }),
};

const conditions: RuleSet = {
  name: "conditions on id and container",
  isOfSession: true,
  token: { id: `card-${manyRules - 1}-4242`, container: containerAt(manyRules - 1) },
  rule: (place) => ({
    ...ruleAt(place),
    conditions: [
      { attribute: "id", operator: "starts_with", value: `card-${place}-` },
      { attribute: "container", operator: "equals", value: containerAt(place) },
    ],
  }),
};

/** The longest value that a condition may have. */
const longestValue = 500;

/** The id meets the condition of every rule, so that it rules out none of them. */
const nested: RuleSet = {
  name: "conditions, each id a prefix of the next",
  isOfSession: true,
  token: { id: "4".repeat(longestValue), container: containerAt(manyRules - 1) },
  rule: (place) => ({
    ...ruleAt(place),
    conditions: [
      { attribute: "id", operator: "starts_with", value: "4".repeat(1 + (place % longestValue)) },
      { attribute: "container", operator: "equals", value: containerAt(place) },
    ],
  }),
};

export const ruleSets: readonly RuleSet[] = [containers, conditions, nested];

function containerAt(place: number): string {
  return `/pci/customer-${place}/`;
}

function ruleAt(place: number) {
  return { priority: place + 1, transform: "mask", permissions: [permission] };
}

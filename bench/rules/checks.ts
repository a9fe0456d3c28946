import type * as decisions from "../../src/contract/decisions/decide.js";
import type { RuleRecord } from "../../src/contract/grants.js";
import { loadBuilt } from "../built.js";
import type { Load, LoadRequest } from "../load/load.js";
import { addressOf } from "../servers.js";
import type { Subject } from "../stage.js";
import { type manyRules, permission, type RuleSet, rulesOf } from "./rule-sets.js";

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
  const generateKey = set.isOfSession ? makeSession : makeApplication;
  const requests: LoadRequest[] = [];
  while (requests.length < checksAtATime) {
    const key = await generateKey(subject, rulesOf(set, count));
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

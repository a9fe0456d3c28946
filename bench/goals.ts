import type { Estimate } from "./report/estimate.js";

/** A performance goal. The lowest value of the rounds decides. */
interface Goal {
  readonly metric: string;
  readonly limit: { readonly atMost: number } | { readonly atLeast: number };
  /** What the limit counts. */
  readonly unit: string;
  readonly digits?: number;
}

const byHand = "× by hand on node:http + lmdb";
const byHandOnMongo = "× by hand on node:http + MongoDB";

/** All goals. Ratios compare CPU time per request on the embedded store in one process unless stated otherwise. */
export const goals = {
  read: { metric: "Verify: GET /applications/key", limit: { atMost: 2 }, unit: byHand },
  check: { metric: "Check: POST /access/check", limit: { atMost: 2 }, unit: byHand },
  createSession: { metric: "POST /sessions", limit: { atMost: 1.35 }, unit: byHand },
  createAndAuthorize: {
    metric: "POST /sessions and /sessions/authorize",
    limit: { atMost: 1.9 },
    unit: byHand,
  },
  createApplication: { metric: "POST /applications", limit: { atMost: 2.4 }, unit: byHand },
  createSessionP99: { metric: "p99 of POST /sessions", limit: { atMost: 2 }, unit: byHand },
  authorizeP99: {
    metric: "p99 of POST /sessions/authorize",
    limit: { atMost: 2 },
    unit: byHand,
  },
  createApplicationP99: {
    metric: "p99 of POST /applications",
    limit: { atMost: 2 },
    unit: byHand,
  },
  latency: {
    metric: "p99 of GET at 70 % of the highest load",
    limit: { atMost: 5 },
    unit: "× p50",
    digits: 1,
  },
  expiryP99: {
    metric: "p99 of POST /sessions while sessions expire",
    limit: { atMost: 1.5 },
    unit: "× before the first expires",
  },
  mongoRead: {
    metric: "MongoDB: GET /applications/key",
    limit: { atMost: 0.75 },
    unit: byHandOnMongo,
  },
  mongoCheck: {
    metric: "MongoDB: POST /access/check",
    limit: { atMost: 0.75 },
    unit: byHandOnMongo,
  },
  mongoCreateSession: {
    metric: "MongoDB: POST /sessions",
    limit: { atMost: 1 },
    unit: byHandOnMongo,
  },
  mongoCreateAndAuthorize: {
    metric: "MongoDB: POST /sessions and /sessions/authorize",
    limit: { atMost: 1 },
    unit: byHandOnMongo,
  },
  mongoCreateApplication: {
    metric: "MongoDB: POST /applications",
    limit: { atMost: 1.3 },
    unit: byHandOnMongo,
  },
  batch: {
    metric: "gRPC batch of 100 checks, each",
    limit: { atMost: 0.1 },
    unit: "× gRPC CheckAccess",
  },
  extAuthz: { metric: "Envoy ext_authz", limit: { atMost: 1.3 }, unit: "× gRPC CheckAccess" },
  forwardAuth: {
    metric: "GET /access/forward",
    limit: { atMost: 1.2 },
    unit: "× POST /access/check",
  },
  observedRead: { metric: "Metrics and log: GET", limit: { atMost: 1.1 }, unit: "× without them" },
  observedCheck: {
    metric: "Metrics and log: gRPC CheckAccess",
    limit: { atMost: 1.1 },
    unit: "× without them",
  },
  twoWorkers: {
    metric: "Two workers: GET",
    limit: { atLeast: 1.7 },
    unit: "× the requests that one has CPU time for",
  },
  startup: {
    metric: "Start to ready, most applications",
    limit: { atMost: 400 },
    unit: "ms beyond 1.5 × node -e 0",
    digits: 0,
  },
  growthOfRead: {
    metric: "GET, most applications",
    limit: { atMost: 1.15 },
    unit: "× with fewest",
  },
  growthOfUpdate: {
    metric: "PUT, most applications",
    limit: { atMost: 1.15 },
    unit: "× with fewest",
  },
  growthOfPages: {
    metric: "Last page, most applications",
    limit: { atMost: 1.15 },
    unit: "× the first page",
  },
  memory: {
    metric: "Memory of a worker after all suites",
    limit: { atMost: 150 },
    unit: "MB without mapped pages",
    digits: 0,
  },
} satisfies Record<string, Goal>;

type GoalName = keyof typeof goals;

/** Values of some goals. */
export type Measured = Readonly<Partial<Record<GoalName, Estimate>>>;

export interface Verdict extends Goal {
  readonly value: Estimate | undefined;
  /** Absent if it was not measured. */
  readonly isMet?: boolean;
}

export function evaluateGoals(measured: Measured): Verdict[] {
  return Object.entries<Goal>(goals).map(([name, goal]) => {
    const value = measured[name as GoalName];
    return value === undefined || Number.isNaN(value.lowest)
      ? { ...goal, value: undefined }
      : { ...goal, value, isMet: isWithin(value.lowest, goal.limit) };
  });
}

function isWithin(value: number, limit: Goal["limit"]): boolean {
  return "atMost" in limit ? value <= limit.atMost : value >= limit.atLeast;
}

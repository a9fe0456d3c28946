import type { Estimate } from "./report/estimate.js";

/** A performance goal. The lowest value of the rounds decides. */
interface Goal {
  readonly metric: string;
  readonly limit: { readonly atMost: number } | { readonly atLeast: number };
  /** What the limit counts. */
  readonly unit: string;
  readonly digits?: number;
}

const bare = "× bare node:http";
const grpcJs = "× @grpc/grpc-js that does nothing";
const floor = "× durable node:http + lmdb";
const unaryChecks = "× the checks per CPU second of unary calls";
const startup = "ms beyond 1.5 × node -e 0";

/** All goals. Ratios compare CPU time per request on the embedded store in one process unless stated otherwise. */
export const goals = {
  read: { metric: "GET /applications/key", limit: { atMost: 1.8 }, unit: bare },
  grpcRead: { metric: "gRPC GetApplicationByKey", limit: { atMost: 0.95 }, unit: grpcJs },
  grpcCheck: { metric: "gRPC CheckAccess", limit: { atMost: 1.15 }, unit: grpcJs },
  extAuthz: { metric: "Envoy ext_authz", limit: { atMost: 1.3 }, unit: "× gRPC CheckAccess" },
  forwardAuth: {
    metric: "GET /access/forward",
    limit: { atMost: 1.2 },
    unit: "× GET /applications/key",
  },
  connectRead: { metric: "Connect JSON GetApplicationByKey", limit: { atMost: 2.2 }, unit: bare },
  grpcWebRead: { metric: "gRPC-Web GetApplicationByKey", limit: { atMost: 2.2 }, unit: bare },
  batch: { metric: "gRPC batch of 100 keys", limit: { atLeast: 12 }, unit: unaryChecks },
  stream: { metric: "gRPC StreamCheckAccess", limit: { atLeast: 4 }, unit: unaryChecks },
  createSession: { metric: "POST /sessions", limit: { atMost: 1.25 }, unit: floor },
  createAndAuthorize: {
    metric: "POST /sessions and /sessions/authorize",
    limit: { atMost: 1.6 },
    unit: floor,
  },
  createApplication: { metric: "POST /applications", limit: { atMost: 1.8 }, unit: floor },
  createSessionP99: { metric: "p99 of POST /sessions", limit: { atMost: 1.5 }, unit: floor },
  authorizeP99: { metric: "p99 of POST /sessions/authorize", limit: { atMost: 1.5 }, unit: floor },
  createApplicationP99: {
    metric: "p99 of POST /applications",
    limit: { atMost: 1.5 },
    unit: floor,
  },
  latency: {
    metric: "p99 of GET at 70 % of the highest load",
    limit: { atMost: 5 },
    unit: "× p50",
    digits: 1,
  },
  mongoRead: {
    metric: "MongoDB: GET, 64 connections",
    limit: { atLeast: 3 },
    unit: "× the requests per second with one findOne each",
  },
  mongoCreateSession: {
    metric: "MongoDB: POST /sessions",
    limit: { atMost: 2.3 },
    unit: "× node:http + findOne, 64 connections",
  },
  mongoRoundTrips: {
    metric: "MongoDB: commands of a change",
    limit: { atMost: 2 },
    unit: "beyond the commit",
    digits: 1,
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
  startWithFew: {
    metric: "Start to ready, fewest",
    limit: { atMost: 400 },
    unit: startup,
    digits: 0,
  },
  startWithMany: {
    metric: "Start to ready, most",
    limit: { atMost: 400 },
    unit: startup,
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

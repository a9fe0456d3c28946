import type { Model } from "./checker.js";

/**
 * A session is valid while its application exists and has the epoch that was stamped at open, and its subject has no
 * newer epoch than the one stamped at authorize. A revocation is one write: of the subject's or the application's epoch,
 * or the application's tombstone. The stamps are read before the write of the session.
 */
interface State {
  application: { exists: boolean; epoch: number };
  subjectEpoch: number;
  sessions: Session[];
  flows: Flow[];
  revocations: ("new" | "written" | "acknowledged")[];
  checks: Check[];
  crashes: number;
  problem: string;
}

interface Session {
  exists: boolean;
  applicationEpoch: number;
  isAuthorized: boolean;
  subjectEpoch: number;
  /** How many revocations had been acknowledged when it was authorized. */
  acknowledgedBefore: number;
}

interface Flow {
  is: "opening" | "inserting" | "reading" | "authorizing" | "stamping" | "done";
  applicationEpoch: number;
  subjectEpoch: number;
  /** How many revocations had been written when it read what it stamps. */
  writtenBefore: number;
}

interface Check {
  is: "new" | "deciding" | "done";
  session: number;
  seen: Session | null;
  acknowledged: number;
}

export type RevocationBug =
  | "stamps after the authorizing write"
  | "deletes the sessions that a scan finds"
  | "no session authorized before the acknowledgement survives";

interface Options {
  readonly revoke: "subject" | "application" | "delete";
  readonly sessions?: number;
  readonly revocations?: number;
  readonly checks?: number;
  /** The epoch that authorize reads may come from a cache. */
  readonly isCached?: boolean;
  readonly bug?: RevocationBug;
}

export function revocation({
  revoke,
  sessions = 1,
  revocations = 1,
  checks = 1,
  isCached = false,
  bug,
}: Options): Model<State> {
  const newSession = (): Session => ({
    exists: false,
    applicationEpoch: -1,
    isAuthorized: false,
    subjectEpoch: -1,
    acknowledgedBefore: -1,
  });
  const acknowledged = (state: State) =>
    state.revocations.filter((is) => is === "acknowledged").length;
  const written = (state: State) => state.revocations.filter((is) => is !== "new").length;
  const hasStamps = bug !== "deletes the sessions that a scan finds";
  const stampsLate = bug === "stamps after the authorizing write";

  return {
    initial: {
      application: { exists: true, epoch: 0 },
      subjectEpoch: 0,
      sessions: Array.from({ length: sessions }, newSession),
      flows: Array.from({ length: sessions }, () => ({
        is: "opening",
        applicationEpoch: -1,
        subjectEpoch: -1,
        writtenBefore: 0,
      })),
      revocations: Array.from({ length: revocations }, () => "new"),
      checks: Array.from({ length: checks }, () => ({
        is: "new",
        session: -1,
        seen: null,
        acknowledged: 0,
      })),
      crashes: 1,
      problem: "",
    },
    next(state, step) {
      state.flows.forEach((flow, index) => {
        const at = (label: string, act: (copy: State, mine: Flow, session: Session) => unknown) =>
          step(`session ${index}: ${label}`, (copy) =>
            act(copy, copy.flows[index] as Flow, copy.sessions[index] as Session),
          );
        if (flow.is !== "opening" && flow.is !== "done" && state.crashes > 0) {
          at("CRASH", (copy, mine) => {
            copy.crashes--;
            mine.is = "done";
          });
        }
        switch (flow.is) {
          case "opening":
            at("open reads the application", (copy, mine) => {
              mine.is = copy.application.exists ? "inserting" : "done";
              mine.applicationEpoch = copy.application.epoch;
              mine.writtenBefore = revoke === "subject" ? 0 : written(copy);
            });
            break;
          case "inserting":
            at("open inserts the session", (_, mine, session) => {
              Object.assign(session, { exists: true, applicationEpoch: mine.applicationEpoch });
              mine.is = "reading";
            });
            break;
          case "reading":
            at("authorize reads session, application and epoch", (copy, mine, session) => {
              const { exists, epoch } = copy.application;
              mine.is =
                session.exists && exists && epoch === session.applicationEpoch
                  ? "authorizing"
                  : "done";
              mine.subjectEpoch = isCached ? 0 : copy.subjectEpoch;
              mine.writtenBefore = revoke === "subject" ? written(copy) : mine.writtenBefore;
            });
            break;
          case "authorizing":
            at("authorize writes the session", (copy, mine, session) => {
              if (!session.exists) {
                mine.is = "done";
                return;
              }
              const subjectEpoch = stampsLate ? -1 : mine.subjectEpoch;
              Object.assign(session, {
                isAuthorized: true,
                subjectEpoch,
                acknowledgedBefore: acknowledged(copy),
              });
              mine.is = stampsLate ? "stamping" : "done";
            });
            break;
          case "stamping":
            at("authorize stamps the epoch", (copy, mine, session) => {
              session.subjectEpoch = copy.subjectEpoch;
              mine.is = "done";
            });
        }
      });

      state.revocations.forEach((is, index) => {
        if (is === "new") {
          step(`revocation ${index}: writes`, (copy) => {
            copy.revocations[index] = "written";
            if (!hasStamps) {
              copy.sessions = copy.sessions.map((session) =>
                session.isAuthorized ? { ...session, exists: false } : session,
              );
            } else if (revoke === "subject") {
              copy.subjectEpoch++;
            } else if (revoke === "application") {
              copy.application.epoch++;
            } else {
              copy.application.exists = false;
            }
          });
        }
        if (is === "written") {
          step(`revocation ${index}: acknowledged`, (copy) => {
            copy.revocations[index] = "acknowledged";
          });
        }
      });

      state.checks.forEach((check, index) => {
        if (check.is === "new") {
          state.sessions.forEach((session, target) => {
            if (session.isAuthorized) {
              step(`check ${index}: reads session ${target}`, (copy) => {
                copy.checks[index] = {
                  is: "deciding",
                  session: target,
                  seen: { ...session },
                  acknowledged: acknowledged(copy),
                };
              });
            }
          });
        }
        const { seen } = check;
        if (check.is === "deciding" && seen) {
          step(`check ${index}: reads application and epoch, decides`, (copy) => {
            const { application } = copy;
            const isValid =
              seen.exists &&
              application.exists &&
              seen.applicationEpoch === application.epoch &&
              (!hasStamps || seen.subjectEpoch >= copy.subjectEpoch);
            const before =
              bug === "no session authorized before the acknowledgement survives"
                ? seen.acknowledgedBefore
                : (copy.flows[check.session] as Flow).writtenBefore;
            if (isValid && check.acknowledged > before) {
              copy.problem = `session ${check.session} is accepted after ${check.acknowledged} revocations, it came after ${before}`;
            }
            copy.checks[index] = { is: "done", session: -1, seen: null, acknowledged: 0 };
          });
        }
      });
    },
    invariants: {
      revokedSessionsAreRefused: ({ problem }) => problem === "" || problem,
    },
    reachable: {
      everyFlowEnds: { to: ({ flows }) => flows.every(({ is }) => is === "done") },
    },
  };
}

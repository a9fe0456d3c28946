import type {
  ClockFacts,
  LayoutFacts,
  MembersFacts,
  MongoFacts,
  TtlFacts,
} from "../../store/mongo/inspect.js";
import { type Finding, fail, ok, warn } from "./finding.js";
import { checkManagers } from "./manager-checks.js";

/** Judges what was seen of a database. */
export function checkMongo(facts: MongoFacts): Finding[] {
  const { version, topology, lookup, layout, clock, ttl, overdue, members, managerEnds } = facts;
  return [
    topology === "single server"
      ? fail(
          "store",
          `MongoDB ${version} is a single server`,
          "Start mongod with --replSet and call rs.initiate(): one member will do.",
        )
      : ok("store", `MongoDB ${version}, a ${topology}; a look-up takes ${lookup.toFixed(1)} ms`),
    ...checkLayout(layout),
    ...checkManagers(managerEnds),
    checkClock(clock),
    ...checkTtl(ttl, overdue),
    ...(topology === "sharded cluster" ? [notSeen("members", "rs.status()")] : []),
    ...(members === undefined ? [] : checkMembers(members)),
  ];
}

const start = "Start the service, with a user that has the roles readWrite and dbAdmin:";

function checkLayout({ missing, of, differences }: LayoutFacts): Finding[] {
  if (missing.length === of) {
    return [warn("layout", "the database is empty", `${start} it makes all it needs.`)];
  }
  const findings = [
    ...missing.map((name) => `the collection ${name} is missing`),
    ...differences,
  ].map((found) => fail("layout", found, `${start} it mends this.`));
  return findings.length > 0
    ? findings
    : [ok("layout", `${of} collections, with all of their indexes`)];
}

/** Milliseconds. */
const toleratedSkew = 1_000;

function checkClock({ ahead, uncertainty }: ClockFacts): Finding {
  const distance = Math.abs(ahead);
  const found = `${distance} ms ${ahead < 0 ? "behind" : "ahead of"} the database, give or take ${uncertainty} ms`;
  return distance - uncertainty > toleratedSkew
    ? warn(
        "clock",
        found,
        "Let both machines keep time by NTP. What expires goes by the database; what is made here gets a wrong place in lists.",
      )
    : ok("clock", found);
}

/** What each shard has for itself cannot be asked for through the router. */
const notSeen = (check: string, command: string): Finding =>
  warn(check, "not checked here: each shard has its own", `Look at each shard: ${command}.`);

const hiddenHint = "Give the user of MONGODB_URI the role clusterMonitor to have it checked.";

function checkTtl(ttl: TtlFacts | "hidden" | undefined, overdue: readonly string[]): Finding[] {
  const findings = overdue.map((name) =>
    fail(
      "ttl monitor",
      `${name} has documents that should have been removed long ago`,
      "Let MongoDB remove what has expired: db.adminCommand({setParameter: 1, ttlMonitorEnabled: true}).",
    ),
  );
  if (ttl === undefined) {
    return [...findings, notSeen("ttl monitor", "db.serverStatus().metrics.ttl")];
  }
  return [...findings, ttlFinding(ttl)];
}

function ttlFinding(ttl: TtlFacts | "hidden"): Finding {
  if (ttl === "hidden") {
    return warn("ttl monitor", "may not be seen by this user", hiddenHint);
  }
  const { isEnabled, passes, interval, uptime } = ttl;
  if (!isEnabled) {
    return fail(
      "ttl monitor",
      "is off: what has expired is refused but never removed",
      "Turn it on: db.adminCommand({setParameter: 1, ttlMonitorEnabled: true}), and in the settings of mongod.",
    );
  }
  return passes === 0 && uptime > 3 * interval
    ? fail(
        "ttl monitor",
        `has not run once in ${uptime} s`,
        "Look at the log of mongod, or restart it.",
      )
    : ok("ttl monitor", `runs every ${interval} s, ${passes} times so far`);
}

/** Milliseconds. */
const toleratedLag = 10_000;
const withData = new Set(["PRIMARY", "SECONDARY"]);

function checkMembers(members: MembersFacts | "hidden"): Finding[] {
  if (members === "hidden") {
    return [warn("members", "may not be seen by this user", hiddenHint)];
  }
  const { all, majority } = members;
  const good = all.filter(({ isHealthy, state }) => isHealthy && withData.has(state));
  const told = `${good.length} of ${all.length} hold data and are well`;
  const findings = all.flatMap(({ name, state, isHealthy, lag = 0 }) => {
    if (!isHealthy) {
      return [warn("members", `${name} is away (${state})`, "Start it, or see to its network.")];
    }
    return lag > toleratedLag
      ? [
          warn(
            "members",
            `${name} is ${Math.round(lag / 1_000)} s behind`,
            "See to its disk and network: it cannot take over quickly.",
          ),
        ]
      : [];
  });
  if (!all.some(({ state }) => state === "PRIMARY")) {
    return [
      ...findings,
      fail("members", "there is no primary", "See to the members: most must reach each other."),
    ];
  }
  if (good.length < majority) {
    const mend = `Start members until ${majority} are well: writes wait for a majority.`;
    return [...findings, fail("members", told, mend)];
  }
  return [
    ...findings,
    all.length === 1
      ? warn(
          "members",
          "there is one member",
          "Add two: nothing takes over where the only one fails.",
        )
      : ok("members", told),
  ];
}

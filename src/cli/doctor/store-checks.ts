import type { FileFacts, FolderFacts } from "../../store/lmdb/inspect.js";
import type {
  ClockFacts,
  LayoutFacts,
  MembersFacts,
  MongoFacts,
  TtlFacts,
} from "../../store/mongo/inspect.js";
import type { ManagerEnd } from "../../store/port/applications.js";
import { type Finding, fail, ok, warn } from "./finding.js";

const megabyte = 1024 * 1024;
/** Below the one the store may come to a stop soon, below the other today. */
const littleRoom = 1024 * megabyte;
const noRoom = 64 * megabyte;

/** Judges what was seen of the folder of an embedded store. */
export function checkFolder(facts: FolderFacts): Finding[] {
  const { path, isThere, isWritable, isShared, store } = facts;
  const findings = [folderFinding(facts)];
  if (isThere && isShared) {
    findings.push(warn("store", `${path} can be read by others`, `Close it: chmod 700 ${path}`));
  }
  if (store && isWritable) {
    findings.push(layoutFinding(store, path), ...checkManagers(store.managerEnds));
  }
  return [...findings, roomFinding(facts)];
}

function folderFinding({ path, isThere, isWritable, store }: FolderFacts): Finding {
  if (!isWritable) {
    return fail(
      "store",
      `${path} cannot be ${isThere ? "written" : "made"} by this user`,
      "Let DATA_DIR name a folder that this user may write, or give it to this user.",
    );
  }
  return store
    ? ok("store", `${path} holds ${Math.ceil(store.bytes / megabyte)} MB`)
    : warn(
        "store",
        `${path} holds no data yet`,
        "The service makes it with its first start. Where there should be data, let DATA_DIR name its folder.",
      );
}

function layoutFinding({ fault, schema, knownSchema }: FileFacts, path: string): Finding {
  if (fault !== undefined) {
    return fail(
      "layout",
      `${path}: ${fault}`,
      "Restore it from a backup, or choose another folder.",
    );
  }
  if (schema === undefined) {
    return ok("layout", "is looked at when the service starts");
  }
  if (schema > knownSchema) {
    return fail(
      "layout",
      `version ${schema} is of a newer Latchkey; this one knows ${knownSchema}`,
      "Run that version, or choose another folder.",
    );
  }
  return schema === knownSchema
    ? ok("layout", `version ${schema}, with all of its indexes`)
    : warn(
        "layout",
        `version ${schema} is of an earlier Latchkey`,
        `The next start brings it to ${knownSchema}: stop all processes of the earlier version first.`,
      );
}

function roomFinding({ freeBytes }: FolderFacts): Finding {
  const found = `${Math.floor(freeBytes / megabyte).toLocaleString("en-US")} MB are free`;
  const mend = "Make room on the disk of DATA_DIR: without it nothing can be written.";
  if (freeBytes < noRoom) {
    return fail("disk", found, mend);
  }
  return freeBytes < littleRoom ? warn("disk", found, mend) : ok("disk", found);
}

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

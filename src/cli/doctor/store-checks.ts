import { countOf, formatCount } from "../../lib/terminal.js";
import type { DataFileStatus, FolderStatus } from "../../store/lmdb/folder.js";
import type {
  ClockStatus,
  LayoutStatus,
  MembersStatus,
  MongoStatus,
  TtlStatus,
} from "../../store/mongo/inspect.js";
import type { ManagerExpiration } from "../../store/port/applications.js";
import { type Finding, fail, ok, warn } from "./report.js";

const megabyte = 1024 * 1024;
/** Free disk space below which the check warns or fails. */
const lowSpace = 1024 * megabyte;
const criticalSpace = 64 * megabyte;

/** Checks the data folder of an embedded store. */
export function checkFolder(status: FolderStatus): Finding[] {
  const { path, exists, isWritable, isShared, store } = status;
  const findings = [folderFinding(status)];
  if (exists && isShared) {
    findings.push(warn("store", `${path} is readable by other users`, `Run: chmod 700 ${path}`));
  }
  if (store && isWritable) {
    findings.push(layoutFinding(store, path), ...checkManagers(store.managerExpirations));
  }
  return [...findings, diskFinding(status)];
}

function folderFinding({ path, exists, isWritable, store }: FolderStatus): Finding {
  if (!isWritable) {
    return fail(
      "store",
      `this user cannot ${exists ? "write to" : "create"} ${path}`,
      "Set DATA_DIR to a writable folder, or change the owner of this one.",
    );
  }
  return store
    ? ok("store", `${path}, ${Math.ceil(store.bytes / megabyte)} MB`)
    : warn(
        "store",
        `${path} contains no data`,
        "The service creates it on its first start. If data exists elsewhere, set DATA_DIR to its folder.",
      );
}

function layoutFinding({ error, schema, supportedSchema }: DataFileStatus, path: string): Finding {
  if (error !== undefined) {
    return fail("layout", `${path}: ${error}`, "Restore a backup, or use another folder.");
  }
  if (schema === undefined) {
    return ok("layout", "checked when the service starts");
  }
  return schema === supportedSchema
    ? ok("layout", `version ${schema}, all indexes exist`)
    : warn(
        "layout",
        "the folder is not prepared yet",
        "The service prepares it on its next start.",
      );
}

function diskFinding({ freeBytes }: FolderStatus): Finding {
  const found = `${formatCount(Math.floor(freeBytes / megabyte))} MB free`;
  const fix = "Free space on the disk of DATA_DIR. Writes fail without it.";
  if (freeBytes < criticalSpace) {
    return fail("disk", found, fix);
  }
  return freeBytes < lowSpace ? warn("disk", found, fix) : ok("disk", found);
}

/** The number of tenants that are listed. */
const maxListed = 10;

/** Warns of tenants whose last manager expires, if known. */
function checkManagers(expirations: readonly ManagerExpiration[] | undefined): Finding[] {
  if (expirations === undefined) {
    return [];
  }
  if (expirations.length === 0) {
    return [ok("managers", "no tenant's last manager expires")];
  }
  const sorted = [...expirations].sort((one, other) => one.at - other.at);
  const findings = sorted
    .slice(0, maxListed)
    .map(({ tenantId, at }) =>
      warn(
        "managers",
        `the last application of tenant ${tenantId} that can create and update applications expires at ${new Date(at).toISOString()}`,
        "Create another one that holds application:create and application:update and does not expire.",
      ),
    );
  const unlisted = expirations.length - findings.length;
  return unlisted === 0
    ? findings
    : [
        ...findings,
        warn(
          "managers",
          `the last manager expires in ${countOf(unlisted, "more tenant")}`,
          "Create another manager in each of them.",
        ),
      ];
}

/** Checks a MongoDB database. */
export function checkMongo(status: MongoStatus): Finding[] {
  const { version, topology, lookup, layout, clock, ttl, overdue, members } = status;
  const { logLag, managerExpirations } = status;
  return [
    topology === "single server"
      ? fail(
          "store",
          `MongoDB ${version} is a single server`,
          "Start mongod with --replSet and call rs.initiate(). One member is enough.",
        )
      : ok("store", `MongoDB ${version}, ${topology}, lookup ${lookup.toFixed(1)} ms`),
    ...checkLayout(layout),
    ...checkManagers(managerExpirations),
    checkClock(clock),
    ...checkLog(logLag),
    ...checkTtl(ttl, overdue),
    ...(topology === "sharded cluster" ? [notChecked("members", "rs.status()")] : []),
    ...(members === undefined ? [] : checkMembers(members)),
  ];
}

const startHint = "Start the service with a user that has the roles readWrite and dbAdmin:";

function checkLayout({ missing, expectedCount, differences }: LayoutStatus): Finding[] {
  if (missing.length === expectedCount) {
    return [warn("layout", "the database is empty", `${startHint} it creates everything.`)];
  }
  const findings = [
    ...missing.map((name) => `the collection ${name} is missing`),
    ...differences,
  ].map((found) => fail("layout", found, `${startHint} it fixes this.`));
  return findings.length > 0
    ? findings
    : [ok("layout", `${expectedCount} collections, all indexes exist`)];
}

/** Milliseconds. */
const maxSkew = 1_000;

function checkClock({ ahead, uncertainty }: ClockStatus): Finding {
  const skew = Math.abs(ahead);
  const found = `${skew} ms ${ahead < 0 ? "behind" : "ahead of"} the database (±${uncertainty} ms)`;
  return skew - uncertainty > maxSkew
    ? warn(
        "clock",
        found,
        "Synchronize both clocks with NTP. Expiry uses the clock of the database; list order uses the clock of this machine.",
      )
    : ok("clock", found);
}

/** Milliseconds. The position of the log is recorded every second. */
const maxLogLag = 10_000;

function checkLog(lag: number | undefined): Finding[] {
  if (lag === undefined) {
    return [];
  }
  const seconds = (lag / 1_000).toFixed(1);
  return [
    lag > maxLogLag
      ? warn(
          "audit log",
          `complete up to ${seconds} s ago`,
          "Check that an instance is running: one of them adds the latest changes.",
        )
      : ok("audit log", `complete up to ${seconds} s ago`),
  ];
}

/** A mongos does not report the state of each shard. */
const notChecked = (check: string, command: string): Finding =>
  warn(check, "not checked on a sharded cluster", `Check each shard: ${command}.`);

const roleHint = "Grant the role clusterMonitor to the user of MONGODB_URI.";

function checkTtl(ttl: TtlStatus | "hidden" | undefined, overdue: readonly string[]): Finding[] {
  const findings = overdue.map((name) =>
    fail(
      "ttl monitor",
      `${name} contains documents that expired long ago`,
      "Enable the TTL monitor: db.adminCommand({setParameter: 1, ttlMonitorEnabled: true}).",
    ),
  );
  if (ttl === undefined) {
    return [...findings, notChecked("ttl monitor", "db.serverStatus().metrics.ttl")];
  }
  return [...findings, ttlFinding(ttl)];
}

function ttlFinding(ttl: TtlStatus | "hidden"): Finding {
  if (ttl === "hidden") {
    return warn("ttl monitor", "not visible to this user", roleHint);
  }
  const { isEnabled, passes, interval, uptime } = ttl;
  if (!isEnabled) {
    return fail(
      "ttl monitor",
      "disabled: expired documents are refused but never deleted",
      "Enable the TTL monitor: db.adminCommand({setParameter: 1, ttlMonitorEnabled: true}), and in the configuration of mongod.",
    );
  }
  return passes === 0 && uptime > 3 * interval
    ? fail("ttl monitor", `has not run in ${uptime} s`, "Check the log of mongod, or restart it.")
    : ok("ttl monitor", `runs every ${interval} s, ${passes} passes`);
}

/** Milliseconds. */
const maxLag = 10_000;
const dataStates = new Set(["PRIMARY", "SECONDARY"]);

function checkMembers(members: MembersStatus | "hidden"): Finding[] {
  if (members === "hidden") {
    return [warn("members", "not visible to this user", roleHint)];
  }
  const { all, majority } = members;
  const healthy = all.filter(({ isHealthy, state }) => isHealthy && dataStates.has(state));
  const summary = `${healthy.length} of ${all.length} data members are healthy`;
  const findings = all.flatMap(({ name, state, isHealthy, lag = 0 }) => {
    if (!isHealthy) {
      return [
        warn("members", `${name} is unreachable (${state})`, "Start it, or check its network."),
      ];
    }
    return lag > maxLag
      ? [
          warn(
            "members",
            `${name} is ${Math.round(lag / 1_000)} s behind`,
            "Check its disk and network. It cannot take over quickly.",
          ),
        ]
      : [];
  });
  if (!all.some(({ state }) => state === "PRIMARY")) {
    return [
      ...findings,
      fail("members", "no primary", "Check the members. A majority must reach each other."),
    ];
  }
  if (healthy.length < majority) {
    const fix = `Start members until ${majority} are healthy. Writes wait for a majority.`;
    return [...findings, fail("members", summary, fix)];
  }
  return [
    ...findings,
    all.length === 1
      ? warn(
          "members",
          "only one member",
          "Add two. Otherwise no member can take over if this one fails.",
        )
      : ok("members", summary),
  ];
}

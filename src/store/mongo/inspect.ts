/** Inspects a database for `latchkey doctor` without changing it. */
import { isDeepStrictEqual } from "node:util";
import { type Binary, type Db, type Document, MongoServerError } from "mongodb";
import type { ReadMode } from "../../config/settings.js";
import type { ManagerExpiration } from "../port/applications.js";
import { expiredRetention } from "../port/records.js";
import {
  applicationsName,
  byExpiry,
  byManager,
  type CollectionSpec,
  managerFilter,
  sessionsName,
} from "./collections.js";
import { type Connection, connect } from "./connect.js";
import { databaseTime, fromUuid, maxDate, notExpired } from "./documents.js";
import { callDriver, limitsOf } from "./driver-call.js";
import { logPositionName } from "./log/position.js";
import { collectionsFor, findIndex, hasOptions, indexOptions } from "./prepare-schema.js";

/** A value is `hidden` if the database user lacks the privilege to read it. */
export interface MongoStatus {
  readonly version: string;
  readonly topology: "replica set" | "sharded cluster" | "single server";
  readonly layout: LayoutStatus;
  /** Milliseconds that the audit log is behind the changes. Absent if no instance has started yet. */
  readonly logLag: number | undefined;
  readonly clock: ClockStatus;
  /** The duration of a lookup with the read concern of authentication, in milliseconds. */
  readonly lookup: number;
  /** Absent for a sharded cluster, where each shard has its own. */
  readonly ttl: TtlStatus | "hidden" | undefined;
  /** Collections with documents that the TTL monitor should have deleted long ago. */
  readonly overdue: readonly string[];
  readonly members: MembersStatus | "hidden" | undefined;
  /** When tenants lose their last manager. Absent if the layout differs. */
  readonly managerExpirations?: readonly ManagerExpiration[] | undefined;
}

export interface LayoutStatus {
  /** The missing collections. */
  readonly missing: readonly string[];
  /** The number of collections that should exist. */
  readonly expectedCount: number;
  /** The differences in existing collections. */
  readonly differences: readonly string[];
}

export interface ClockStatus {
  /** How far our clock is ahead of the database's, and the possible error, in milliseconds. */
  readonly ahead: number;
  readonly uncertainty: number;
}

export interface TtlStatus {
  readonly isEnabled: boolean;
  readonly passes: number;
  /** In seconds. */
  readonly interval: number;
  readonly uptime: number;
}

export interface MembersStatus {
  readonly all: readonly MemberStatus[];
  /** The number of members that must acknowledge a write. */
  readonly majority: number;
}

interface MemberStatus {
  readonly name: string;
  /** For example `PRIMARY`. */
  readonly state: string;
  readonly isHealthy: boolean;
  /** Milliseconds behind the primary. Absent for members without data. */
  readonly lag?: number | undefined;
}

interface InspectOptions {
  readonly uri: string;
  readonly database: string;
  readonly reads: ReadMode;
  readonly eventRetention: number;
}

export async function inspectMongo(options: InspectOptions): Promise<MongoStatus> {
  const connection = await connect(options.uri, options.reads);
  try {
    return await callDriver(() => inspect(connection, options));
  } finally {
    await connection.client.close();
  }
}

async function inspect(
  { client, freshRead }: Connection,
  { database, eventRetention }: InspectOptions,
): Promise<MongoStatus> {
  const admin = client.db("admin");
  const db = client.db(database, { readPreference: "primary" });
  const hello = await admin.command({ hello: 1, ...limitsOf({ db: admin }) });
  const topology =
    hello.msg === "isdbgrid" ? "sharded cluster" : hello.setName ? "replica set" : "single server";
  const { version } = await admin.command({ buildInfo: 1, ...limitsOf({ db: admin }) });
  const startedAt = performance.now();
  const readConcern = topology === "single server" ? {} : freshRead();
  const first = { projection: { _id: 1 }, ...limitsOf({ db }), ...readConcern };
  await db.collection(applicationsName).findOne({}, first);
  const lookup = performance.now() - startedAt;
  const layout = await inspectLayout(db, collectionsFor(eventRetention));
  const isComplete = layout.missing.length + layout.differences.length === 0;
  return {
    version,
    topology,
    lookup,
    layout,
    logLag: await readLogLag(db),
    managerExpirations: isComplete ? await findManagerExpirations(db) : undefined,
    clock: await compareClocks(admin),
    ttl: topology === "sharded cluster" ? undefined : await orHidden(() => inspectTtl(admin)),
    overdue: await findOverdue(db),
    members: topology === "replica set" ? await orHidden(() => inspectMembers(admin)) : undefined,
  };
}

async function readLogLag(db: Db): Promise<number | undefined> {
  const projection = { lag: { $subtract: ["$$NOW", "$complete_at"] } };
  const options = { projection, ...limitsOf({ db }) };
  const position = await db.collection(logPositionName).findOne<{ lag: number }>({}, options);
  return position?.lag;
}

async function inspectLayout(db: Db, specs: readonly CollectionSpec[]): Promise<LayoutStatus> {
  const missing: string[] = [];
  const differences: string[] = [];
  for (const spec of specs) {
    const { name } = spec;
    const [existing] = await db.listCollections({ name }, { nameOnly: false }).toArray();
    if (!existing) {
      missing.push(name);
      continue;
    }
    if (!hasOptions(existing.options, spec)) {
      differences.push(`${name} has a different validator or different options`);
    }
    const indexes = await db.collection(name).indexes();
    for (const index of spec.indexes) {
      const found = findIndex(indexes, index);
      const text = `the index ${JSON.stringify(index.key)} of ${name}`;
      if (!found) {
        differences.push(`${text} is missing`);
      } else if (!isDeepStrictEqual(indexOptions(found), index.options)) {
        differences.push(`${text} has different options`);
      }
    }
  }
  return { missing, expectedCount: specs.length, differences };
}

const clockReadings = 5;

/** The fastest of several readings is the most accurate. */
async function compareClocks(admin: Db): Promise<ClockStatus> {
  let best: ClockStatus | undefined;
  for (let reading = 0; reading < clockReadings; reading++) {
    const before = Date.now();
    const { localTime } = await admin.command({ hello: 1, ...limitsOf({ db: admin }) });
    const after = Date.now();
    const measured = {
      ahead: Math.round((before + after) / 2 - localTime.getTime()),
      uncertainty: Math.ceil((after - before) / 2),
    };
    best = best && best.uncertainty <= measured.uncertainty ? best : measured;
  }
  return best as ClockStatus;
}

async function inspectTtl(admin: Db): Promise<TtlStatus> {
  const { ttlMonitorEnabled, ttlMonitorSleepSecs = 60 } = await admin.command({
    getParameter: 1,
    ttlMonitorEnabled: 1,
    ttlMonitorSleepSecs: 1,
    ...limitsOf({ db: admin }),
  });
  const status = await admin.command({ serverStatus: 1, ...limitsOf({ db: admin }) });
  return {
    isEnabled: ttlMonitorEnabled,
    passes: Number(status.metrics?.ttl?.passes ?? 0),
    interval: ttlMonitorSleepSecs,
    uptime: status.uptime,
  };
}

/** The TTL monitor runs about once a minute and may take a while, in milliseconds. */
const cleanupGrace = 15 * 60_000;

async function findOverdue(db: Db): Promise<string[]> {
  const overdue = new Date(Date.now() - expiredRetention - cleanupGrace);
  const found: string[] = [];
  for (const name of [applicationsName, sessionsName]) {
    const filter = { expires_at: { $lt: overdue } };
    const options = { projection: { _id: 1 }, sort: byExpiry, ...limitsOf({ db }) } as const;
    if (await db.collection(name).findOne(filter, options)) {
      found.push(name);
    }
  }
  return found;
}

async function findManagerExpirations(db: Db): Promise<ManagerExpiration[]> {
  const expirations = db
    .collection(applicationsName)
    .aggregate<{ _id: Binary; at: Date }>(
      [
        { $match: { ...managerFilter, disabled: { $ne: true }, ...notExpired(databaseTime) } },
        { $group: { _id: "$tenant_id", at: { $max: { $ifNull: ["$expires_at", maxDate] } } } },
        { $match: { at: { $lt: maxDate } } },
      ],
      { hint: byManager, ...limitsOf({ db }) },
    );
  return (await expirations.toArray()).map(({ _id, at }) => ({
    tenantId: fromUuid(_id),
    at: at.getTime(),
  }));
}

async function inspectMembers(admin: Db): Promise<MembersStatus> {
  const status = await admin.command({ replSetGetStatus: 1, ...limitsOf({ db: admin }) });
  const members: Document[] = status.members;
  const primary = members.find(({ stateStr }) => stateStr === "PRIMARY");
  return {
    majority: status.writeMajorityCount,
    all: members.map(({ name, stateStr, health, optimeDate }) => ({
      name,
      state: stateStr,
      isHealthy: health === 1,
      lag:
        optimeDate && primary
          ? Math.max(0, primary.optimeDate.getTime() - optimeDate.getTime())
          : undefined,
    })),
  };
}

const unauthorized = 13;

async function orHidden<T>(read: () => Promise<T>): Promise<T | "hidden"> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof MongoServerError && error.code === unauthorized) {
      return "hidden";
    }
    throw error;
  }
}

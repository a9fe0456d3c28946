import { idFromBytes, writeId } from "../../lib/uuid.js";
import type { SessionLimit } from "../port/change.js";
import { SessionQuotaReached } from "../port/errors.js";
import type { SessionRecord } from "../port/records.js";
import { changeCount, countIn } from "./indexes.js";
import { after, timeBytes, timeOf } from "./row-keys.js";
import { sliceSize } from "./slices.js";
import type { Tables } from "./tables.js";

/** Counts the open sessions of applications, inside `write`. */
export interface OpenSessions {
  add(session: SessionRecord): void;
  /** Removes sessions that have expired, are deleted or are authorized. */
  remove(sessions: readonly SessionRecord[]): void;

  /**
   * Returns the refusal of another session, if the limit is reached. Authorized sessions
   * do not count if `isLive` returns false for their authorizer and its epoch.
   */
  limitReached(
    limit: SessionLimit,
    now: number,
    isLive: (authorizerId: string, epoch: number) => boolean,
  ): SessionQuotaReached | undefined;
}

type Kind = "unauthorized" | "authorized";

/**
 * A key of `openSessions` starts with an application, an epoch and what is counted:
 *
 *     kind                the number of its sessions
 *     kind, expiry, id    one of these sessions; its group
 *     kind + 2, group     the number of sessions in a group
 *
 * A group is the network that opened an unauthorized session, or the authorizer of
 * another with its epoch. The counts of an earlier epoch are removed with the last of
 * its sessions, by the sweeper.
 */
const kinds = { unauthorized: 0, authorized: 1 } as const;
const groupsOf = 2;

const epochAt = 16;
const kindAt = 20;
const prefixSize = 21;

/** How many rows are read to find when the first session of a group expires. */
const maxScanned = 1_000;

export function createOpenSessions({
  openSessions: table,
}: Pick<Tables, "openSessions">): OpenSessions {
  const countOf = (key: Buffer) => countIn(table, key);

  /** Removes rows, and changes each count once. */
  function removeRows(keys: readonly Buffer[]): void {
    const removed = new Map<string, { readonly key: Buffer; rows: number }>();
    const count = (key: Buffer) => {
      const name = key.toString("latin1");
      const counted = removed.get(name);
      if (counted) {
        counted.rows++;
      } else {
        removed.set(name, { key, rows: 1 });
      }
    };
    for (const key of keys) {
      const group = table.get(key);
      if (group) {
        table.remove(key);
        const prefix = key.subarray(0, prefixSize);
        count(prefix);
        count(groupKey(prefix, group));
      }
    }
    for (const { key, rows } of removed.values()) {
      changeCount(table, key, -rows);
    }
  }

  /** Removes expired sessions that are not swept yet, as long as a quota is reached. */
  function removeExpired(prefix: Buffer, now: number, isFull: () => boolean): void {
    const end = after(Buffer.concat([prefix, timeBytes(now)]));
    const range = { start: prefix, exclusiveStart: true, end, limit: sliceSize };
    let removed: number;
    do {
      const expired = [...table.getKeys(range)];
      removeRows(expired);
      removed = expired.length;
    } while (removed === sliceSize && isFull());
  }

  /** Milliseconds until the first session expires whose group matches, at least as far as rows are read. */
  function waitFor(prefix: Buffer, now: number, matches: (group: Buffer) => boolean): number {
    const range = { start: prefix, exclusiveStart: true, end: after(prefix), limit: maxScanned };
    let expiry = now + 1;
    for (const { key, value } of table.getRange(range)) {
      expiry = timeOf(key.subarray(prefixSize));
      if (matches(value)) {
        break;
      }
    }
    return expiry - now;
  }

  /** The sessions of groups that are not live. */
  function countDead(prefix: Buffer, isLive: (group: Buffer) => boolean): number {
    const start = groupKey(prefix, Buffer.alloc(0));
    let dead = 0;
    for (const { key, value } of table.getRange({ start, end: after(start) })) {
      dead += isLive(key.subarray(prefixSize)) ? 0 : value.readUInt32BE();
    }
    return dead;
  }

  return {
    add(session) {
      const key = keyOf(session);
      if (!table.doesExist(key)) {
        const group = groupOf(session);
        table.put(key, group);
        const prefix = key.subarray(0, prefixSize);
        changeCount(table, prefix, 1);
        changeCount(table, groupKey(prefix, group), 1);
      }
    },

    remove: (sessions) => removeRows(sessions.map(keyOf)),

    limitReached({ quota, applicationId, epoch, networkHash, limit }, now, isLive) {
      const kind = quota === "authorized" ? "authorized" : "unauthorized";
      const prefix = prefixOf(applicationId, epoch, kind);
      const network = networkHash && Buffer.from(networkHash);
      const counted = network ? groupKey(prefix, network) : prefix;
      const isReached = () => countOf(counted) >= limit;
      if (!isReached()) {
        return undefined;
      }
      removeExpired(prefix, now, isReached);
      const isLiveGroup = (group: Buffer) => isLive(idFromBytes(group), group.readUInt32BE(idSize));
      const dead = quota === "authorized" && isReached() ? countDead(prefix, isLiveGroup) : 0;
      if (countOf(counted) - dead < limit) {
        return undefined;
      }
      const isCounted = {
        authorized: isLiveGroup,
        unauthorized: () => true,
        network: (group: Buffer) => network?.equals(group) ?? true,
      }[quota];
      return new SessionQuotaReached(quota, limit, waitFor(prefix, now, isCounted));
    },
  };
}

const idSize = 16;

function prefixOf(applicationId: string, epoch: number, kind: Kind): Buffer {
  const prefix = Buffer.allocUnsafe(prefixSize);
  writeId(applicationId, prefix, 0);
  prefix.writeUInt32BE(epoch, epochAt);
  prefix[kindAt] = kinds[kind];
  return prefix;
}

function groupKey(prefix: Buffer, group: Buffer): Buffer {
  const key = Buffer.concat([prefix, group]);
  key[kindAt] = (prefix[kindAt] as number) + groupsOf;
  return key;
}

function groupOf({ authorizedBy, authorizationEpoch, networkHash }: SessionRecord): Buffer {
  if (authorizedBy === undefined) {
    return Buffer.from(networkHash);
  }
  const group = Buffer.allocUnsafe(idSize + 4);
  writeId(authorizedBy, group, 0);
  group.writeUInt32BE(authorizationEpoch, idSize);
  return group;
}

function keyOf({ id, applicationId, epoch, authorizedBy, expiresAt }: SessionRecord): Buffer {
  const sessionId = Buffer.allocUnsafe(idSize);
  writeId(id, sessionId, 0);
  const kind = authorizedBy === undefined ? "unauthorized" : "authorized";
  return Buffer.concat([prefixOf(applicationId, epoch, kind), timeBytes(expiresAt), sessionId]);
}

import {
  type ApplicationType,
  applicationTypes,
  isRestricted,
  type RuleRecord,
} from "../../contract/grants.js";
import { idFromBytes, writeId } from "../../lib/uuid.js";
import type { ApplicationRecord, KeyRecord, KeyUse } from "../port/records.js";
import type { Layout, RecordInput } from "./records.js";
import {
  maxKeys,
  readKeys,
  readList,
  recordKeyUse,
  sizeOfKeys,
  toGrantsText,
  writeKeys,
} from "./row-fields.js";

/**
 * A row of `applications` has the fields of authentication at fixed offsets,
 * then the keys, then the application as the JSON of the REST API:
 *
 *      0  layout number
 *      1  index of the type in `applicationTypes`
 *      2  flags: disabled, restricted
 *      3  number of keys
 *      4  version
 *     12  expiry, or infinity
 *     20  tenant id
 *     36  last use, or minus infinity
 *     44  session epoch
 *     48  start of the permissions, start and end of the rules
 *     60  start of the JSON
 *     64  keys, then JSON
 */
const typeAt = 1;
const flagsAt = 2;
const keyCountAt = 3;
const versionAt = 4;
const expiryAt = 12;
const tenantAt = 20;
const useAt = 36;
const epochAt = 44;
const permissionsAt = 48;
const rulesAt = 52;
const rulesEndAt = 56;
const textAt = 60;
const headerSize = 64;

/** The first byte of infinity, and of no finite time. */
const infinityByte = 0x7f;

const disabledFlag = 1;
const restrictedFlag = 2;

const rulesLabel = ',"rules":';

/** Shared by the many applications without restrictions. */
const unrestricted: readonly string[] = Object.freeze([]);

/** The members of the JSON that are neither grants nor in the header. */
interface Fields {
  readonly name: string;
  readonly created_by?: string;
  readonly created_at: string;
  readonly modified_by?: string;
  readonly modified_at?: string;
  readonly allowed_origins: readonly string[];
  readonly allowed_cidrs: readonly string[];
  readonly session_quota?: number;
}

export const applicationLayout: Layout<ApplicationRecord> = {
  encode,
  open: (id, row) => new StoredApplication(id, row),
};

/** Returns the row with a use recorded, or undefined if a newer use is recorded. The version stays the same. */
export function withUse(
  row: Buffer,
  { keyId, at }: Omit<KeyUse, "applicationId">,
): Buffer | undefined {
  const count = row.readUInt8(keyCountAt);
  const isKeyUpdated = keyId !== undefined && recordKeyUse(row, headerSize, count, keyId, at);
  const before = row.readDoubleBE(useAt);
  if (at <= before) {
    return isKeyUpdated ? row : undefined;
  }
  row.writeDoubleBE(at, useAt);
  // `last_used_at` is the last member, so that the JSON need not be encoded again.
  const unchanged = row.subarray(0, row.length - lastMember(before).length);
  return Buffer.concat([unchanged, Buffer.from(lastMember(at))]);
}

function encode(record: RecordInput<ApplicationRecord>, layout: number, version: number): Buffer {
  const { keys } = record;
  if (keys.length > maxKeys) {
    throw new RangeError(`An application can have at most ${maxKeys} keys, not ${keys.length}.`);
  }
  const { permissions, rules } = toGrantsText(record);
  const head = headOf(record);
  const text = head + permissions + rulesLabel + rules + tailOf(record, version);
  const textStart = headerSize + sizeOfKeys(keys);
  const permissionsStart = textStart + Buffer.byteLength(head);
  const rulesStart = permissionsStart + Buffer.byteLength(permissions) + rulesLabel.length;

  const row = Buffer.allocUnsafe(textStart + Buffer.byteLength(text));
  row[0] = layout;
  row[typeAt] = applicationTypes.indexOf(record.type);
  row[flagsAt] = flagsOf(record);
  row[keyCountAt] = keys.length;
  row.writeDoubleBE(version, versionAt);
  row.writeDoubleBE(record.expiresAt ?? Number.POSITIVE_INFINITY, expiryAt);
  writeId(record.tenantId, row, tenantAt);
  row.writeDoubleBE(record.lastUsedAt ?? Number.NEGATIVE_INFINITY, useAt);
  row.writeUInt32BE(record.sessionEpoch, epochAt);
  row.writeUInt32BE(permissionsStart, permissionsAt);
  row.writeUInt32BE(rulesStart, rulesAt);
  row.writeUInt32BE(rulesStart + Buffer.byteLength(rules), rulesEndAt);
  row.writeUInt32BE(textStart, textAt);
  writeKeys(keys, row, headerSize);
  row.write(text, textStart);
  return row;
}

function flagsOf(record: RecordInput<ApplicationRecord>): number {
  return (record.disabled ? disabledFlag : 0) | (isRestricted(record) ? restrictedFlag : 0);
}

function headOf({ id, tenantId, name, type }: RecordInput<ApplicationRecord>): string {
  const start = `{"id":"${id}","tenant_id":"${tenantId}","name":${JSON.stringify(name)}`;
  return `${start},"type":"${type}","permissions":`;
}

function tailOf(record: RecordInput<ApplicationRecord>, version: number): string {
  return (
    member("created_by", record.createdBy) +
    member("created_at", toDate(record.createdAt)) +
    member("modified_by", record.modifiedBy) +
    member("modified_at", toDate(record.modifiedAt)) +
    member("expires_at", toDate(record.expiresAt)) +
    member("version", String(version)) +
    member("status", record.disabled ? "disabled" : "enabled") +
    `,"allowed_origins":${JSON.stringify(record.allowedOrigins)}` +
    `,"allowed_cidrs":${JSON.stringify(record.allowedCidrs)}` +
    (record.sessionQuota === undefined ? "" : `,"session_quota":${record.sessionQuota}`) +
    lastMember(record.lastUsedAt ?? Number.NEGATIVE_INFINITY)
  );
}

/** The end of the JSON: the last use, if any. */
function lastMember(use: number): string {
  return `${use === Number.NEGATIVE_INFINITY ? "" : member("last_used_at", toDate(use))}}`;
}

/** A JSON member whose value, an id or a date, needs no escaping. */
function member(name: string, value: string | undefined): string {
  return value === undefined ? "" : `,"${name}":"${value}"`;
}

/** Decodes each field on first access: most requests need only a few. */
class StoredApplication implements ApplicationRecord {
  #tenantId?: string;
  #permissions?: readonly string[];
  #rules?: readonly RuleRecord[];
  #fields?: Fields;

  constructor(
    readonly id: string,
    private readonly row: Buffer,
  ) {}

  get version(): number {
    return this.row.readDoubleBE(versionAt);
  }

  get tenantId(): string {
    this.#tenantId ??= idFromBytes(this.row, tenantAt);
    return this.#tenantId;
  }

  get type(): ApplicationType {
    return applicationTypes[this.row[typeAt] as number] as ApplicationType;
  }

  get disabled(): boolean {
    return this.has(disabledFlag);
  }

  get sessionEpoch(): number {
    return this.row.readUInt32BE(epochAt);
  }

  get expiresAt(): number | undefined {
    // Hot path: nearly all applications never expire.
    return this.row[expiryAt] === infinityByte ? undefined : this.row.readDoubleBE(expiryAt);
  }

  get lastUsedAt(): number | undefined {
    const use = this.row.readDoubleBE(useAt);
    return use === Number.NEGATIVE_INFINITY ? undefined : use;
  }

  get keys(): readonly KeyRecord[] {
    return readKeys(this.row, headerSize, this.row[keyCountAt] as number);
  }

  get document(): Buffer {
    return this.row.subarray(this.row.readUInt32BE(textAt));
  }

  get permissions(): readonly string[] {
    const { row } = this;
    const end = row.readUInt32BE(rulesAt) - rulesLabel.length;
    this.#permissions ??= readList<string>(row, row.readUInt32BE(permissionsAt), end);
    return this.#permissions;
  }

  get rules(): readonly RuleRecord[] {
    const { row } = this;
    this.#rules ??= readList<RuleRecord>(
      row,
      row.readUInt32BE(rulesAt),
      row.readUInt32BE(rulesEndAt),
    );
    return this.#rules;
  }

  get allowedOrigins(): readonly string[] {
    return this.has(restrictedFlag) ? this.fields().allowed_origins : unrestricted;
  }

  get allowedCidrs(): readonly string[] {
    return this.has(restrictedFlag) ? this.fields().allowed_cidrs : unrestricted;
  }

  get name(): string {
    return this.fields().name;
  }

  get createdBy(): string | undefined {
    return this.fields().created_by;
  }

  get createdAt(): number {
    return Date.parse(this.fields().created_at);
  }

  get modifiedBy(): string | undefined {
    return this.fields().modified_by;
  }

  get modifiedAt(): number | undefined {
    return toTime(this.fields().modified_at);
  }

  get sessionQuota(): number | undefined {
    return this.fields().session_quota;
  }

  private has(flag: number): boolean {
    return ((this.row[flagsAt] as number) & flag) !== 0;
  }

  /** Parses the JSON without the grants, which are most of it. */
  private fields(): Fields {
    if (!this.#fields) {
      const { row } = this;
      const head = row.toString("utf8", row.readUInt32BE(textAt), row.readUInt32BE(permissionsAt));
      const tail = row.toString("utf8", row.readUInt32BE(rulesEndAt));
      this.#fields = JSON.parse(`${head}[]${tail}`) as Fields;
    }
    return this.#fields;
  }
}

function toDate(time: number | undefined): string | undefined {
  return time === undefined ? undefined : new Date(time).toISOString();
}

function toTime(date: string | undefined): number | undefined {
  return date === undefined ? undefined : Date.parse(date);
}

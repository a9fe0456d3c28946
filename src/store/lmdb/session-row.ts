import type { RuleRecord } from "../../contract/grants.js";
import { idFromBytes, writeId } from "../../lib/uuid.js";
import type { SessionRecord } from "../port/records.js";
import type { Layout, RecordInput } from "./records.js";
import { readList, toGrantsText } from "./row-fields.js";

/**
 * A row of `sessions` has fixed fields, then the hashes, then the permissions
 * and the rules in JSON:
 *
 *      0  layout number
 *      2  sizes of the key hash and the nonce hash
 *      6  version
 *     14  creation time
 *     22  expiry
 *     30  authorization time, or infinity
 *     38  ids of tenant, application and authorizer
 *     86  start of the rules
 *     90  session epoch
 *     94  hashes, permissions, rules
 */
const keyHashSizeAt = 2;
const nonceHashSizeAt = 4;
const versionAt = 6;
const creationAt = 14;
const expiryAt = 22;
const authorizationAt = 30;
const tenantAt = 38;
const applicationAt = 54;
const authorizerAt = 70;
const rulesAt = 86;
const epochAt = 90;
const headerSize = 94;

export const sessionLayout: Layout<SessionRecord> = {
  encode,
  open: (id, row) => new StoredSession(id, row),
};

function encode(record: RecordInput<SessionRecord>, layout: number, version: number): Buffer {
  const { keyHash, nonceHash } = record;
  const { permissions, rules } = toGrantsText(record);
  const nonceHashStart = headerSize + keyHash.length;
  const permissionsStart = nonceHashStart + nonceHash.length;
  const rulesStart = permissionsStart + Buffer.byteLength(permissions);

  const row = Buffer.allocUnsafe(rulesStart + Buffer.byteLength(rules));
  row.fill(0, 0, headerSize);
  row[0] = layout;
  row.writeUInt16BE(keyHash.length, keyHashSizeAt);
  row.writeUInt16BE(nonceHash.length, nonceHashSizeAt);
  row.writeDoubleBE(version, versionAt);
  row.writeDoubleBE(record.createdAt, creationAt);
  row.writeDoubleBE(record.expiresAt, expiryAt);
  row.writeDoubleBE(record.authorizedAt ?? Number.POSITIVE_INFINITY, authorizationAt);
  writeId(record.tenantId, row, tenantAt);
  writeId(record.applicationId, row, applicationAt);
  if (record.authorizedBy !== undefined) {
    writeId(record.authorizedBy, row, authorizerAt);
  }
  row.writeUInt32BE(rulesStart, rulesAt);
  row.writeUInt32BE(record.epoch, epochAt);
  row.set(keyHash, headerSize);
  row.set(nonceHash, nonceHashStart);
  row.write(permissions, permissionsStart);
  row.write(rules, rulesStart);
  return row;
}

/** Decodes each field on first access: most requests need only a few. */
class StoredSession implements SessionRecord {
  #permissions?: readonly string[];
  #rules?: readonly RuleRecord[];

  constructor(
    readonly id: string,
    private readonly row: Buffer,
  ) {}

  get version(): number {
    return this.row.readDoubleBE(versionAt);
  }

  get tenantId(): string {
    return idFromBytes(this.row, tenantAt);
  }

  get applicationId(): string {
    return idFromBytes(this.row, applicationAt);
  }

  get epoch(): number {
    return this.row.readUInt32BE(epochAt);
  }

  get createdAt(): number {
    return this.row.readDoubleBE(creationAt);
  }

  get expiresAt(): number {
    return this.row.readDoubleBE(expiryAt);
  }

  get authorizedAt(): number | undefined {
    const time = this.row.readDoubleBE(authorizationAt);
    return time === Number.POSITIVE_INFINITY ? undefined : time;
  }

  get authorizedBy(): string | undefined {
    return this.authorizedAt === undefined ? undefined : idFromBytes(this.row, authorizerAt);
  }

  get keyHash(): Uint8Array {
    return this.row.subarray(headerSize, this.nonceHashStart());
  }

  get nonceHash(): Uint8Array {
    return this.row.subarray(this.nonceHashStart(), this.permissionsStart());
  }

  get permissions(): readonly string[] {
    const { row } = this;
    this.#permissions ??= readList<string>(row, this.permissionsStart(), row.readUInt32BE(rulesAt));
    return this.#permissions;
  }

  get rules(): readonly RuleRecord[] {
    const { row } = this;
    this.#rules ??= readList<RuleRecord>(row, row.readUInt32BE(rulesAt), row.length);
    return this.#rules;
  }

  private nonceHashStart(): number {
    return headerSize + this.row.readUInt16BE(keyHashSizeAt);
  }

  private permissionsStart(): number {
    return this.nonceHashStart() + this.row.readUInt16BE(nonceHashSizeAt);
  }
}

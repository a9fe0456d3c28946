import { idFromBytes, writeId } from "../../ids.js";
import {
  type ApplicationRecord,
  type ApplicationType,
  applicationTypes,
  type RuleRecord,
} from "../store.js";
import { readList, toGrantsText } from "./grants-text.js";
import type { Layout, Unwritten } from "./records.js";

/**
 * A row of `applications` is what authentication needs at fixed places, then
 * the hash of the key, then the application in JSON as the API shows it:
 *
 *      0  the number of this layout
 *      1  the place of its type among all types
 *      2  the size of the hash
 *      4  version
 *     12  when it ends, or infinity
 *     20  tenant
 *     36  where the permissions begin, and where the rules begin and end
 *     48  the hash, then the text
 */
const typeAt = 1;
const hashSizeAt = 2;
const versionAt = 4;
const endAt = 12;
const tenantAt = 20;
const permissionsAt = 36;
const rulesAt = 40;
const rulesEndAt = 44;
const headerSize = 48;

const rulesLabel = ',"rules":';

/** What the text tells beside grants, where it is not in the header. */
interface Fields {
  readonly name: string;
  readonly created_by?: string;
  readonly created_at: string;
  readonly modified_by?: string;
  readonly modified_at?: string;
}

export const applicationLayout: Layout<ApplicationRecord> = {
  hashes: ["keyHash"],
  encode,
  open: (id, row) => new StoredApplication(id, row),
};

function encode(record: Unwritten<ApplicationRecord>, layout: number, version: number): Buffer {
  const { keyHash } = record;
  const { permissions, rules } = toGrantsText(record);
  const head = headOf(record);
  const text = head + permissions + rulesLabel + rules + tailOf(record);
  const textStart = headerSize + keyHash.length;
  const permissionsStart = textStart + Buffer.byteLength(head);
  const rulesStart = permissionsStart + Buffer.byteLength(permissions) + rulesLabel.length;

  const row = Buffer.allocUnsafe(textStart + Buffer.byteLength(text));
  row[0] = layout;
  row[typeAt] = applicationTypes.indexOf(record.type);
  row.writeUInt16BE(keyHash.length, hashSizeAt);
  row.writeDoubleBE(version, versionAt);
  row.writeDoubleBE(record.expiresAt ?? Number.POSITIVE_INFINITY, endAt);
  writeId(record.tenantId, row, tenantAt);
  row.writeUInt32BE(permissionsStart, permissionsAt);
  row.writeUInt32BE(rulesStart, rulesAt);
  row.writeUInt32BE(rulesStart + Buffer.byteLength(rules), rulesEndAt);
  row.set(keyHash, headerSize);
  row.write(text, textStart);
  return row;
}

function headOf({ id, tenantId, name, type }: Unwritten<ApplicationRecord>): string {
  const start = `{"id":"${id}","tenant_id":"${tenantId}","name":${JSON.stringify(name)}`;
  return `${start},"type":"${type}","permissions":`;
}

function tailOf(record: Unwritten<ApplicationRecord>): string {
  return (
    member("created_by", record.createdBy) +
    member("created_at", toDate(record.createdAt)) +
    member("modified_by", record.modifiedBy) +
    member("modified_at", toDate(record.modifiedAt)) +
    member("expires_at", toDate(record.expiresAt)) +
    "}"
  );
}

/** A member whose value, an id or a date, needs no escapes. */
function member(name: string, value: string | undefined): string {
  return value === undefined ? "" : `,"${name}":"${value}"`;
}

function toDate(moment: number | undefined): string | undefined {
  return moment === undefined ? undefined : new Date(moment).toISOString();
}

function toMoment(date: string | undefined): number | undefined {
  return date === undefined ? undefined : Date.parse(date);
}

/** Reads each part of a row when it is first asked for: most requests ask for few. */
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

  get expiresAt(): number | undefined {
    const end = this.row.readDoubleBE(endAt);
    return end === Number.POSITIVE_INFINITY ? undefined : end;
  }

  get keyHash(): Uint8Array {
    return this.row.subarray(headerSize, this.textStart());
  }

  get document(): Buffer {
    return this.row.subarray(this.textStart());
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
    return toMoment(this.fields().modified_at);
  }

  private textStart(): number {
    return headerSize + this.row.readUInt16BE(hashSizeAt);
  }

  /** Read without the grants, which are most of the text. */
  private fields(): Fields {
    if (!this.#fields) {
      const { row } = this;
      const head = row.toString("utf8", this.textStart(), row.readUInt32BE(permissionsAt));
      const tail = row.toString("utf8", row.readUInt32BE(rulesEndAt));
      this.#fields = JSON.parse(`${head}[]${tail}`) as Fields;
    }
    return this.#fields;
  }
}

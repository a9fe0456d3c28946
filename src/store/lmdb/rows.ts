import { type DescField, type DescMessage, fromBinary } from "@bufbuild/protobuf";
import { WireType } from "@bufbuild/protobuf/wire";
import {
  ApplicationRecordSchema,
  SessionRecordSchema,
} from "../../../gen/latchkey/store/v1/records_pb.js";
import { type ApplicationType, applicationTypes, isRestricted } from "../../contract/grants.js";
import { idFromBytes, writeId } from "../../lib/uuid.js";
import {
  type ApplicationFields,
  type ApplicationRecord,
  copyApplication,
  copySession,
  type KeyRecord,
  type KeyUse,
  type SessionFields,
  type SessionRecord,
} from "../port/records.js";
import { createEncoder } from "./message-encoder.js";

/**
 * A row is a header with what authentication needs, then the record as a
 * message. The header repeats fields of the message at fixed offsets, so that
 * most requests need not decode it. Times of use are only up to date in the header.
 * Headers of applications and sessions start with:
 *
 *      0  layout number, reserved for rows that a later version lays out differently
 *      1  flags
 *      2  index of the type in `applicationTypes`, and number of keys, of an application
 *      4  version
 *     12  last use, or minus infinity
 *     20  expiry, or infinity
 *     28  tenant id
 *     44  session epoch
 *     48  authorization epoch
 */
export const layoutNumber = 1;
const flagsAt = 1;
const typeAt = 2;
const keyCountAt = 3;
const versionAt = 4;
const useAt = 12;
const expiryAt = 20;
const tenantAt = 28;
const epochAt = 44;
const authorizationEpochAt = 48;
const commonSize = 52;

const idSize = 16;
const hashSize = 32;

/** The first byte of infinity, and of no finite time. */
const infinityByte = 0x7f;

/** Encodes and decodes the rows of a table. */
export interface Layout<Fields extends object, R extends Fields> {
  encode(fields: Fields, version: number): Buffer;
  /** Returns the record of a row, which takes ownership of the buffer. Decodes the row unless it gets its fields. */
  open(id: string, row: Buffer, fields?: Fields): R;
}

interface CommonFields {
  readonly lastUsedAt?: number | undefined;
  readonly expiresAt?: number | undefined;
  readonly tenantId: string;
  readonly authorizationEpoch: number;
}

function writeCommonHeader(
  row: Buffer,
  version: number,
  fields: CommonFields,
  epoch: number,
): void {
  row[0] = layoutNumber;
  row.writeDoubleBE(version, versionAt);
  row.writeDoubleBE(fields.lastUsedAt ?? Number.NEGATIVE_INFINITY, useAt);
  row.writeDoubleBE(fields.expiresAt ?? Number.POSITIVE_INFINITY, expiryAt);
  writeId(fields.tenantId, row, tenantAt);
  row.writeUInt32BE(epoch, epochAt);
  row.writeUInt32BE(fields.authorizationEpoch, authorizationEpochAt);
}

/** The offset of {@link readVarint}. A shared variable, because this is a hot path. */
let offset = 0;

/** Reads a varint of up to 28 bits. Longer ones are only skipped. */
function readVarint(row: Buffer): number {
  let value = 0;
  let shift = 0;
  let byte: number;
  do {
    byte = row[offset++] as number;
    value |= (byte & 0x7f) << shift;
    shift += 7;
  } while (byte >= 0x80);
  return value;
}

/** Decodes one list of strings in a message, and skips the other fields without allocating memory. */
function readStrings(row: Buffer, messageStart: number, { number }: DescField): readonly string[] {
  const strings: string[] = [];
  offset = messageStart;
  while (offset < row.length) {
    const tag = readVarint(row);
    switch (tag & wireTypeMask) {
      case WireType.LengthDelimited: {
        const end = readVarint(row) + offset;
        if (tag >>> wireTypeBits === number) {
          strings.push(row.toString("utf8", offset, end));
        }
        offset = end;
        break;
      }
      case WireType.Bit64:
        offset += 8;
        break;
      default:
        // All other fields of a record are varints.
        readVarint(row);
    }
  }
  return strings;
}

const wireTypeBits = 3;
const wireTypeMask = 7;

/** Adds a getter for each field of a message that a class does not read from its header. */
function addMessageFields(prototype: { readonly fields: object }, schema: DescMessage): void {
  for (const { localName } of schema.fields) {
    if (!(localName in prototype) && localName !== "id") {
      Object.defineProperty(prototype, localName, {
        get(this: { readonly fields: Readonly<Record<string, unknown>> }) {
          return this.fields[localName];
        },
      });
    }
  }
}

/** The header of an application continues with its keys, then follows the message. */
const keyHashAt = idSize;
const keyExpiryAt = keyHashAt + hashSize;
const keyUseAt = keyExpiryAt + 8;
const keyImportedAt = keyUseAt + 8;
const keySize = keyImportedAt + 1;

const disabledFlag = 1;
const restrictedFlag = 2;

/** The header has one byte for the number of keys. */
const maxKeys = 255;

const encodeApplication = createEncoder(ApplicationRecordSchema);

export const applicationLayout: Layout<ApplicationFields, ApplicationRecord> = {
  encode(application, version) {
    const { keys } = application;
    if (keys.length > maxKeys) {
      throw new RangeError(`An application can have at most ${maxKeys} keys, not ${keys.length}.`);
    }
    const headerSize = commonSize + keys.length * keySize;
    const row = encodeApplication(application, headerSize);
    writeCommonHeader(row, version, application, application.sessionEpoch);
    row[flagsAt] =
      (application.disabled ? disabledFlag : 0) | (isRestricted(application) ? restrictedFlag : 0);
    row[typeAt] = applicationTypes.indexOf(application.type);
    row[keyCountAt] = keys.length;
    for (const [index, key] of keys.entries()) {
      writeKey(row, commonSize + index * keySize, key);
    }
    return row;
  },

  open: (id, row, fields) => new StoredApplication(id, row, fields) as unknown as ApplicationRecord,
};

function writeKey(row: Buffer, start: number, key: KeyRecord): void {
  assertHashSize(key.hash);
  writeId(key.id, row, start);
  row.set(key.hash, start + keyHashAt);
  row.writeDoubleBE(key.expiresAt ?? Number.POSITIVE_INFINITY, start + keyExpiryAt);
  row.writeDoubleBE(key.lastUsedAt ?? Number.NEGATIVE_INFINITY, start + keyUseAt);
  row[start + keyImportedAt] = key.imported ? 1 : 0;
}

/** Records a use in the row of an application. A later use may already be recorded. */
export function writeUse(row: Buffer, { keyId, at }: Pick<KeyUse, "keyId" | "at">): void {
  const write = (offset: number) => {
    if (row.readDoubleBE(offset) < at) {
      row.writeDoubleBE(at, offset);
    }
  };
  write(useAt);
  for (let index = 0; index < (row[keyCountAt] as number); index++) {
    const start = commonSize + index * keySize;
    if (keyId !== undefined && idFromBytes(row, start) === keyId) {
      write(start + keyUseAt);
    }
  }
}

/** Reads a time that is minus infinity if it is not set. */
function readTime(row: Buffer, offset: number): number | undefined {
  const time = row.readDoubleBE(offset);
  return time === Number.NEGATIVE_INFINITY ? undefined : time;
}

function assertHashSize(hash: Uint8Array): void {
  if (hash.length !== hashSize) {
    throw new RangeError(`A hash has ${hashSize} bytes, not ${hash.length}.`);
  }
}

/** The fields that applications and sessions have in the header, and those of the message. */
abstract class StoredRecord<Fields extends object> {
  // Not `private`: a comparison of records must not see what is cached, or follow a key back to its application.
  #tenantId?: string;
  #permissions?: readonly string[];
  #fields: Fields | undefined;

  constructor(
    readonly id: string,
    protected readonly row: Buffer,
    private readonly messageStart: number,
    private readonly permissionsField: DescField,
    fields: Fields | undefined,
  ) {
    this.#fields = fields;
  }

  /** In bytes. */
  get storedSize(): number {
    return this.row.length;
  }

  /** The decoded message. */
  get fields(): Fields {
    this.#fields ??= this.decode(this.row.subarray(this.messageStart));
    return this.#fields;
  }

  get version(): number {
    return this.row.readDoubleBE(versionAt);
  }

  get tenantId(): string {
    this.#tenantId ??= idFromBytes(this.row, tenantAt);
    return this.#tenantId;
  }

  /** Most calls need no other field of the message. */
  get permissions(): readonly string[] {
    this.#permissions ??= readStrings(this.row, this.messageStart, this.permissionsField);
    return this.#permissions;
  }

  get authorizationEpoch(): number {
    return this.row.readUInt32BE(authorizationEpochAt);
  }

  get expiresAt(): number | undefined {
    // Hot path: nearly all applications never expire.
    return this.row[expiryAt] === infinityByte ? undefined : this.row.readDoubleBE(expiryAt);
  }

  protected abstract decode(message: Buffer): Fields;
}

/** The stored size of a record in bytes. Does not decode it. */
export function storedSizeOf(record: ApplicationRecord | SessionRecord): number {
  return (record as unknown as StoredRecord<object>).storedSize;
}

const applicationPermissions = ApplicationRecordSchema.field.permissions;

/** Reads fields from the header if it has them, and decodes the message for others. */
class StoredApplication extends StoredRecord<ApplicationFields> {
  #keys?: readonly KeyRecord[];

  constructor(id: string, row: Buffer, fields?: ApplicationFields) {
    const headerSize = commonSize + (row[keyCountAt] as number) * keySize;
    super(id, row, headerSize, applicationPermissions, fields);
  }

  protected override decode(message: Buffer): ApplicationFields {
    return copyApplication(fromBinary(ApplicationRecordSchema, message));
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

  get lastUsedAt(): number | undefined {
    return readTime(this.row, useAt);
  }

  get keys(): readonly KeyRecord[] {
    if (!this.#keys) {
      const keys: KeyRecord[] = [];
      for (let index = 0; index < (this.row[keyCountAt] as number); index++) {
        keys.push(new StoredKey(this, this.row, index));
      }
      this.#keys = keys;
    }
    return this.#keys;
  }

  get allowedOrigins(): readonly string[] {
    return this.has(restrictedFlag) ? this.fields.allowedOrigins : unrestricted;
  }

  get allowedCidrs(): readonly string[] {
    return this.has(restrictedFlag) ? this.fields.allowedCidrs : unrestricted;
  }

  private has(flag: number): boolean {
    return ((this.row[flagsAt] as number) & flag) !== 0;
  }
}

addMessageFields(StoredApplication.prototype, ApplicationRecordSchema);

/** Shared by the many applications without restrictions. */
const unrestricted: readonly string[] = Object.freeze([]);

/** A key in the header of its application. */
class StoredKey implements KeyRecord {
  private readonly start: number;

  constructor(
    private readonly application: { readonly fields: ApplicationFields },
    private readonly row: Buffer,
    private readonly index: number,
  ) {
    this.start = commonSize + index * keySize;
  }

  get id(): string {
    return idFromBytes(this.row, this.start);
  }

  get hash(): Uint8Array {
    return this.row.subarray(this.start + keyHashAt, this.start + keyExpiryAt);
  }

  get imported(): boolean | undefined {
    return this.row[this.start + keyImportedAt] === 1 || undefined;
  }

  get expiresAt(): number | undefined {
    const expiry = this.row.readDoubleBE(this.start + keyExpiryAt);
    return expiry === Number.POSITIVE_INFINITY ? undefined : expiry;
  }

  get lastUsedAt(): number | undefined {
    return readTime(this.row, this.start + keyUseAt);
  }

  get createdAt(): number {
    return (this.application.fields.keys[this.index] as KeyRecord).createdAt;
  }
}

/**
 * The header of a session continues with the ids of application and authorizer, the
 * hash of the key, and when it was authorized.
 */
const authorizedFlag = 1;
const applicationAt = commonSize;
const authorizerAt = applicationAt + idSize;
const sessionKeyHashAt = authorizerAt + idSize;
const authorizationAt = sessionKeyHashAt + hashSize;
const sessionHeaderSize = authorizationAt + 8;

const encodeSession = createEncoder(SessionRecordSchema);

export const sessionLayout: Layout<SessionFields, SessionRecord> = {
  encode(session, version) {
    assertHashSize(session.keyHash);
    const row = encodeSession(session, sessionHeaderSize);
    writeCommonHeader(row, version, session, session.epoch);
    writeId(session.applicationId, row, applicationAt);
    if (session.authorizedBy !== undefined) {
      row[flagsAt] = authorizedFlag;
      writeId(session.authorizedBy, row, authorizerAt);
    }
    row.set(session.keyHash, sessionKeyHashAt);
    row.writeDoubleBE(session.authorizedAt ?? Number.NEGATIVE_INFINITY, authorizationAt);
    return row;
  },

  open: (id, row, fields) => new StoredSession(id, row, fields) as unknown as SessionRecord,
};

const sessionPermissions = SessionRecordSchema.field.permissions;

class StoredSession extends StoredRecord<SessionFields> {
  constructor(id: string, row: Buffer, fields?: SessionFields) {
    super(id, row, sessionHeaderSize, sessionPermissions, fields);
  }

  protected override decode(message: Buffer): SessionFields {
    return copySession(fromBinary(SessionRecordSchema, message));
  }

  get applicationId(): string {
    return idFromBytes(this.row, applicationAt);
  }

  get authorizedBy(): string | undefined {
    return this.row[flagsAt] === authorizedFlag ? idFromBytes(this.row, authorizerAt) : undefined;
  }

  get authorizedAt(): number | undefined {
    return readTime(this.row, authorizationAt);
  }

  get epoch(): number {
    return this.row.readUInt32BE(epochAt);
  }

  get keyHash(): Uint8Array {
    return this.row.subarray(sessionKeyHashAt, authorizationAt);
  }
}

addMessageFields(StoredSession.prototype, SessionRecordSchema);

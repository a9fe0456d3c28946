import type { ApplicationType, RuleRecord } from "../../contract/grants.js";
import type { ApplicationRecord } from "../port/records.js";
import { toMoment } from "./application-row.js";
import { isTextRow, readTextRow } from "./old-row.js";
import type { Unwritten } from "./records.js";

/** An application of when it had one key, and could be neither disabled nor restricted. */
type OldApplication = Pick<
  ApplicationRecord,
  | "id"
  | "version"
  | "tenantId"
  | "name"
  | "type"
  | "permissions"
  | "rules"
  | "createdBy"
  | "createdAt"
  | "modifiedBy"
  | "modifiedAt"
  | "expiresAt"
> & { readonly keyHash: Uint8Array };

/** Reads a row of `applications` as it was before schema 4. Its key has the id of the application. */
export function readOldApplication(
  row: Buffer,
): Unwritten<ApplicationRecord> & { readonly version: number } {
  const { keyHash: hash, ...record } = isTextRow(row)
    ? readTextRow<OldApplication>(row, ["keyHash"])
    : readLayout1(row);
  return {
    ...record,
    keys: [{ id: record.id, hash, createdAt: record.createdAt }],
    disabled: false,
    sessionEpoch: 0,
    allowedOrigins: [],
    allowedCidrs: [],
  };
}

/** Where the first layout had what its text, all of the application as the API showed it, did not tell. */
const hashSizeAt = 2;
const versionAt = 4;
const headerSize = 48;

interface Text {
  readonly id: string;
  readonly tenant_id: string;
  readonly name: string;
  readonly type: ApplicationType;
  readonly permissions: readonly string[];
  readonly rules: readonly RuleRecord[];
  readonly created_by?: string;
  readonly created_at: string;
  readonly modified_by?: string;
  readonly modified_at?: string;
  readonly expires_at?: string;
}

function readLayout1(row: Buffer): OldApplication {
  const textStart = headerSize + row.readUInt16BE(hashSizeAt);
  const text = JSON.parse(row.toString("utf8", textStart)) as Text;
  return {
    id: text.id,
    version: row.readDoubleBE(versionAt),
    tenantId: text.tenant_id,
    name: text.name,
    type: text.type,
    keyHash: row.subarray(headerSize, textStart),
    permissions: text.permissions,
    rules: text.rules,
    createdBy: text.created_by,
    createdAt: Date.parse(text.created_at),
    modifiedBy: text.modified_by,
    modifiedAt: toMoment(text.modified_at),
    expiresAt: toMoment(text.expires_at),
  };
}

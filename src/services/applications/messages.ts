import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ApplicationSchema } from "../../../gen/latchkey/v1/application_service_pb.js";
import { toGrantsMessage } from "../../auth/grants.js";
import type { ApplicationRecord } from "../../store/port/records.js";
import { type HasSourceRecord, sourceRecord } from "../../store/port/records.js";
import { toTimestamp } from "../../validation/time.js";
import { versionOf } from "./update-application.js";

type ApplicationInit = MessageInitShape<typeof ApplicationSchema>;

/** Converts a record to the response message. The key is present only if it was just created. */
export function toApplication(record: ApplicationRecord, key?: string): ApplicationInit {
  return key === undefined
    ? (new LazyApplicationMessage(record) as ApplicationInit)
    : toMessage(record, key);
}

function toMessage(record: ApplicationRecord, key?: string): ApplicationInit {
  return {
    id: record.id,
    tenantId: record.tenantId,
    name: record.name,
    key,
    type: record.type,
    ...toGrantsMessage(record),
    createdBy: record.createdBy,
    createdAt: toTimestamp(record.createdAt),
    modifiedBy: record.modifiedBy,
    modifiedAt: toTimestamp(record.modifiedAt),
    expiresAt: toTimestamp(record.expiresAt),
    version: versionOf(record),
    status: record.disabled ? "disabled" : "enabled",
    allowedOrigins: [...record.allowedOrigins],
    allowedCidrs: [...record.allowedCidrs],
    sessionQuota: record.sessionQuota,
    lastUsedAt: toTimestamp(record.lastUsedAt),
  };
}

/** Reads the record lazily: if the encoded response is cached, no field is read. */
class LazyApplicationMessage implements HasSourceRecord {
  private message: ApplicationInit | undefined;

  constructor(private readonly record: ApplicationRecord) {}

  get [sourceRecord]() {
    return this.record;
  }

  private get fields() {
    this.message ??= toMessage(this.record);
    return this.message;
  }

  get id() {
    return this.fields.id;
  }

  get tenantId() {
    return this.fields.tenantId;
  }

  get name() {
    return this.fields.name;
  }

  get type() {
    return this.fields.type;
  }

  get permissions() {
    return this.fields.permissions;
  }

  get rules() {
    return this.fields.rules;
  }

  get createdBy() {
    return this.fields.createdBy;
  }

  get createdAt() {
    return this.fields.createdAt;
  }

  get modifiedBy() {
    return this.fields.modifiedBy;
  }

  get modifiedAt() {
    return this.fields.modifiedAt;
  }

  get expiresAt() {
    return this.fields.expiresAt;
  }

  /** Every REST response reads it for the ETag, so it bypasses the other fields. */
  get version() {
    return versionOf(this.record);
  }

  get status() {
    return this.fields.status;
  }

  get allowedOrigins() {
    return this.fields.allowedOrigins;
  }

  get allowedCidrs() {
    return this.fields.allowedCidrs;
  }

  get sessionQuota() {
    return this.fields.sessionQuota;
  }

  get lastUsedAt() {
    return this.fields.lastUsedAt;
  }
}

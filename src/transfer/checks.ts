import { createHmac } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import {
  type CreateApplicationRequest,
  CreateApplicationRequestSchema,
} from "../../gen/latchkey/v1/application_service_pb.js";
import { AuthorizeSessionRequestSchema } from "../../gen/latchkey/v1/session_service_pb.js";
import { checkGrantsAllowed, toGrantsMessage } from "../auth/grants.js";
import type { FieldViolation } from "../contract/problems.js";
import { invalidRequest, Problem } from "../errors.js";
import type { ImportedApplication, ImportedSession } from "../store/port/transfer.js";
import { checkRestrictions, checkSessionQuota } from "../validation/restrictions.js";
import { checkMessage } from "../validation/validate.js";
import { findMissingContainers } from "../validation/violations.js";

/** The limit of keys per imported application, including expired ones. */
const maxKeys = 100;

/** Rules of container paths whose violation does not prevent an import. */
const containerPathRule = "string.container_path";
const conditionPathRule = "access_rule_condition.container_path";

/** Violations that prevent the import of an application. */
export function findApplicationViolations(record: ImportedApplication): readonly FieldViolation[] {
  const { type, keys } = record;
  if (keys.length > maxKeys) {
    return [{ field: "keys", message: `must have at most ${maxKeys} keys` }];
  }
  return catchViolations(() => {
    checkMessage(CreateApplicationRequestSchema, requestFor(record), containerPathRule);
    const missing = findMissingContainers(type, record);
    if (missing.length > 0) {
      throw invalidRequest(missing);
    }
    checkRestrictions(type, record);
    checkSessionQuota(type, record.sessionQuota);
  });
}

/** Violations of the current API. The application is imported nevertheless, so that its keys keep working. */
export function warningsForApplication(record: ImportedApplication): readonly FieldViolation[] {
  return [
    ...catchViolations(() => checkMessage(CreateApplicationRequestSchema, requestFor(record))),
    ...catchViolations(() => checkGrantsAllowed(record.type, record)),
  ];
}

/** The request that would create an application. */
function requestFor(record: ImportedApplication): CreateApplicationRequest {
  const { name, type, allowedOrigins, allowedCidrs, sessionQuota } = record;
  return create(CreateApplicationRequestSchema, {
    name,
    type,
    ...toGrantsMessage(record),
    allowedOrigins: [...allowedOrigins],
    allowedCidrs: [...allowedCidrs],
    ...(sessionQuota !== undefined && { sessionQuota }),
  });
}

/** Violations of a session, which has no grants until it is authorized. */
export function findSessionViolations(record: ImportedSession): readonly FieldViolation[] {
  const { authorizedAt, authorizedBy, permissions, rules } = record;
  if ((authorizedAt === undefined) !== (authorizedBy === undefined)) {
    return [{ field: "authorized_by", message: "must be set together with authorized_at" }];
  }
  if (authorizedAt !== undefined) {
    return catchViolations(() => {
      // A placeholder: the nonce is used, and only its hash is stored.
      const request = create(AuthorizeSessionRequestSchema, {
        nonce: "-",
        ...toGrantsMessage(record),
      });
      checkMessage(AuthorizeSessionRequestSchema, request, conditionPathRule);
    });
  }
  return permissions.length > 0 || rules.length > 0
    ? [{ field: "authorized_at", message: "is required if permissions or rules are granted" }]
    : [];
}

function catchViolations(check: () => void): readonly FieldViolation[] {
  try {
    check();
    return [];
  } catch (error) {
    if (error instanceof Problem) {
      return error.violations;
    }
    throw error;
  }
}

/** Hashed with each pepper, to identify the pepper without revealing it. */
const fixedText = "latchkey: a check of the pepper";

/** Returns a check value for each pepper, including the empty one, which stands for no pepper. */
export function pepperChecks(peppers: readonly string[]): string[] {
  return peppers.map((pepper) => createHmac("sha256", pepper).update(fixedText).digest("base64"));
}

/** Returns the positions, from one, of check values whose pepper is not configured here. */
export function unknownPeppers(checks: readonly string[], peppers: readonly string[]): number[] {
  const known = new Set(pepperChecks(peppers));
  return checks.flatMap((check, index) => (known.has(check) ? [] : [index + 1]));
}

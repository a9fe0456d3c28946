import { createHmac } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import {
  type CreateApplicationRequest,
  CreateApplicationRequestSchema,
} from "../../gen/latchkey/v1/application_service_pb.js";
import { AuthorizeSessionRequestSchema } from "../../gen/latchkey/v1/session_service_pb.js";
import { checkGrantsSuit, showGrants } from "../auth/grants.js";
import type { FieldViolation } from "../contract/problems.js";
import { invalidRequest, Problem } from "../errors.js";
import type { ImportedApplication, ImportedSession } from "../store/port/transfer.js";
import { missingContainers } from "../validation/grants.js";
import { checkRestrictions, checkSessionQuota } from "../validation/restrictions.js";
import { checkMessage } from "../validation/validate.js";

/** How many keys an application may come with, those that have ended included. */
const mostKeys = 100;

/** What the proto says of the paths of containers, which earlier versions took as they came. */
const newRule = "string.container_path";
const newConditionRule = "access_rule_condition.container_path";

/** All that keeps an application from being one that the API of any version could have made. */
export function faultsOfApplication(record: ImportedApplication): readonly FieldViolation[] {
  const { type, keys } = record;
  if (keys.length > mostKeys) {
    return [{ field: "keys", message: `must be at most ${mostKeys} keys` }];
  }
  return violationsOf(() => {
    checkMessage(CreateApplicationRequestSchema, requestFor(record), newRule);
    const missing = missingContainers(type, record);
    if (missing.length > 0) {
      throw invalidRequest(missing);
    }
    checkRestrictions(type, record);
    checkSessionQuota(type, record.sessionQuota);
  });
}

/** What keeps such an application from being made today, which is no reason to leave its keys behind. */
export function odditiesOfApplication(record: ImportedApplication): readonly FieldViolation[] {
  return [
    ...violationsOf(() => checkMessage(CreateApplicationRequestSchema, requestFor(record))),
    ...violationsOf(() => checkGrantsSuit(record.type, record)),
  ];
}

/** The request that would make an application. */
function requestFor(record: ImportedApplication): CreateApplicationRequest {
  const { name, type, allowedOrigins, allowedCidrs, sessionQuota } = record;
  return create(CreateApplicationRequestSchema, {
    name,
    type,
    ...showGrants(record),
    allowedOrigins: [...allowedOrigins],
    allowedCidrs: [...allowedCidrs],
    ...(sessionQuota !== undefined && { sessionQuota }),
  });
}

/** The same of a session, which has no grants until it is authorized. */
export function faultsOfSession(record: ImportedSession): readonly FieldViolation[] {
  const { authorizedAt, authorizedBy, permissions, rules } = record;
  if ((authorizedAt === undefined) !== (authorizedBy === undefined)) {
    return [{ field: "authorized_by", message: "goes with authorized_at: give both or none" }];
  }
  if (authorizedAt !== undefined) {
    return violationsOf(() => {
      // The nonce is spent.
      const request = create(AuthorizeSessionRequestSchema, { nonce: "-", ...showGrants(record) });
      checkMessage(AuthorizeSessionRequestSchema, request, newConditionRule);
    });
  }
  return permissions.length > 0 || rules.length > 0
    ? [{ field: "authorized_at", message: "is required where permissions or rules are granted" }]
    : [];
}

function violationsOf(check: () => void): readonly FieldViolation[] {
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

/** What is hashed under each pepper, to tell it from others without telling what it is. */
const fixedText = "latchkey: a check of the pepper";

/** A value for each pepper that hashes may have been made with. No pepper, which is the empty text, has one, too. */
export function pepperChecks(peppers: readonly string[]): string[] {
  return peppers.map((pepper) => createHmac("sha256", pepper).update(fixedText).digest("base64"));
}

/** The places, counted from one, of the peppers behind these checks that are unknown here. */
export function unknownPeppers(checks: readonly string[], peppers: readonly string[]): number[] {
  const known = new Set(pepperChecks(peppers));
  return checks.flatMap((check, at) => (known.has(check) ? [] : [at + 1]));
}

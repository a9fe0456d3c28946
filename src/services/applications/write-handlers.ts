import type { HandlerContext } from "@connectrpc/connect";
import type { UpdateApplicationRequest } from "../../../gen/latchkey/v1/application_service_pb.js";
import { callerOf, setTargetApplication } from "../../auth/caller.js";
import { checkGrantsAllowed, checkMayAdminister, readGrants } from "../../auth/grants.js";
import { generateKey } from "../../auth/keys.js";
import type { ApplicationType, Restrictions } from "../../contract/grants.js";
import { kindFor } from "../../contract/key-format.js";
import { applicationNotFound } from "../../errors.js";
import { newId } from "../../lib/uuid.js";
import type { ApplicationChange, ApplicationRecord } from "../../store/port/records.js";
import { checkRestrictions, checkSessionQuota } from "../../validation/restrictions.js";
import { readExpiry } from "../../validation/time.js";
import { stateOfApplication } from "../events/audit.js";
import { toApplication } from "./messages.js";
import {
  type ApplicationHandlers,
  checkVersion,
  type UpdateApplication,
  type UpdateHandlerOptions,
} from "./update-application.js";

/** Handlers that create, update and delete applications. */
export function createWriteHandlers({
  store,
  keyring,
  grantGuard,
  audit,
  updateApplication,
  clock,
}: UpdateHandlerOptions): Pick<
  ApplicationHandlers,
  | "createApplication"
  | "updateApplication"
  | "disableApplication"
  | "enableApplication"
  | "deleteApplication"
> {
  const { applications } = store;

  /** Updates an application with its state before and after in the audit log. */
  async function change(
    context: HandlerContext,
    event: { readonly kind: string; readonly revokes?: boolean },
    request: Parameters<UpdateApplication>[1],
    changeOf: (current: ApplicationRecord) => Omit<ApplicationChange, "modifiedBy">,
  ) {
    let before: ApplicationRecord | undefined;
    const response = (record: ApplicationRecord) => toApplication(record);
    const record = await updateApplication(context, request, {
      ...event,
      change(current) {
        before = current;
        return changeOf(current);
      },
      target: ({ id }) => ({ applicationId: id }),
      before: () => before && stateOfApplication(before),
      after: stateOfApplication,
      response,
    });
    return response(record);
  }

  return {
    async createApplication(request, context) {
      const caller = callerOf(context);
      const type = request.type as ApplicationType;
      const { name, allowedOrigins, allowedCidrs, sessionQuota } = request;
      const grants = readGrants(request);
      checkGrantsAllowed(type, grants);
      checkRestrictions(type, request);
      checkSessionQuota(type, sessionQuota);
      const expiresAt = await readExpiry(request.expiresAt, store);
      grantGuard.checkMayGrant(caller, { type, grants, expiresAt });

      const { tenantId, id: createdBy } = caller.application;
      const id = newId(clock());
      const plaintextKey = generateKey(kindFor(type), id);
      const key = { id: newId(clock()), hash: keyring.hash(plaintextKey) };
      const response = (record: ApplicationRecord) => toApplication(record, plaintextKey);
      const record = await applications.create(
        {
          id,
          tenantId,
          name,
          type,
          ...grants,
          allowedOrigins,
          allowedCidrs,
          key,
          createdBy,
          expiresAt,
          sessionQuota,
        },
        audit(context, {
          kind: "application.created",
          target: () => ({ applicationId: id, keyId: key.id }),
          after: stateOfApplication,
          response,
        }),
      );
      return response(record);
    },

    async updateApplication(request, context) {
      const { name } = request;
      const grants = readGrants(request);
      return change(context, { kind: "application.updated" }, request, (current) => {
        const { type, expiresAt } = current;
        grantGuard.checkMayGrant(callerOf(context), { type, grants, expiresAt, current });
        checkGrantsAllowed(type, grants);
        checkRestrictions(type, request);
        checkSessionQuota(type, request.sessionQuota);
        return { name, ...grants, ...changedLimits(request) };
      });
    },

    async disableApplication(request, context) {
      const event = { kind: "application.disabled", revokes: true };
      return change(context, event, request, () => ({ disabled: true }));
    },

    async enableApplication(request, context) {
      const event = { kind: "application.enabled" };
      return change(context, event, request, () => ({ disabled: false }));
    },

    async deleteApplication(request, context) {
      const caller = callerOf(context);
      const { tenantId } = caller.application;
      const id = setTargetApplication(context, request.id);
      const wasDeleted = await applications.delete(
        tenantId,
        id,
        (current) => {
          checkMayAdminister(caller, current);
          checkVersion(current, request.ifMatch);
        },
        audit(context, {
          kind: "application.deleted",
          target: () => ({ applicationId: id }),
          before: stateOfApplication,
          response: () => ({}),
        }),
      );
      if (!wasDeleted) {
        throw applicationNotFound(id);
      }
      return {};
    },
  };
}

/** The limits to replace: those with a value, and empty ones that the update mask names. */
function changedLimits({
  allowedOrigins,
  allowedCidrs,
  sessionQuota,
  updateMask,
}: UpdateApplicationRequest): Partial<Restrictions> & Pick<ApplicationChange, "sessionQuota"> {
  const isChanged = (isGiven: boolean, path: string) => isGiven || updateMask?.paths.includes(path);
  return {
    ...(isChanged(allowedOrigins.length > 0, "allowed_origins") && { allowedOrigins }),
    ...(isChanged(allowedCidrs.length > 0, "allowed_cidrs") && { allowedCidrs }),
    ...(isChanged(sessionQuota !== undefined, "session_quota") && {
      sessionQuota: sessionQuota ?? null,
    }),
  };
}

import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import {
  type CreateApplicationRequest,
  CreateApplicationRequestSchema,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import { assertMayAdminister } from "../../auth/grants.js";
import { generateKey } from "../../auth/keys.js";
import { callerOf } from "../../call.js";
import type { ApplicationType } from "../../contract/grants.js";
import { kindFor } from "../../contract/key-text.js";
import { createConverter } from "../../contract/message-converter.js";
import type { Dependencies } from "../../dependencies.js";
import { applicationNotFound } from "../../errors.js";
import { newId } from "../../lib/uuid.js";
import type { ApplicationFields, ApplicationRecord } from "../../store/port/records.js";
import { findOversizedGrants } from "../../validation/grants-size.js";
import { findQuotaViolations, findRestrictionViolations } from "../../validation/restrictions.js";
import { readExpiry } from "../../validation/time.js";
import { throwViolations } from "../../validation/validate.js";
import { findDisallowedGrants } from "../../validation/violations.js";
import { stateOf, withDenialTarget } from "../events/audit.js";
import { readGrants } from "../rules.js";
import { toApplication } from "./messages.js";
import {
  type ApplicationHandlers,
  type ApplicationUpdate,
  assertVersion,
  createUpdateApplication,
  type UpdateApplication,
} from "./update-application.js";
import { readUpdate } from "./update-fields.js";

/** Handlers that create, update and delete applications. */
export function createWriteHandlers({
  store,
  keyring,
  grantGuard,
  audit,
  clock,
  settings,
}: Pick<Dependencies, "store" | "keyring" | "grantGuard" | "audit" | "clock" | "settings">): Pick<
  ApplicationHandlers,
  | "createApplication"
  | "updateApplication"
  | "disableApplication"
  | "enableApplication"
  | "deleteApplication"
> {
  const { applications } = store;
  const updateApplication = createUpdateApplication({ store, grantGuard, audit });

  /** Updates an application with its state before and after in the audit log. */
  async function change(
    context: HandlerContext,
    event: { readonly kind: string; readonly revokes?: boolean },
    request: Parameters<UpdateApplication>[1],
    changeOf: ApplicationUpdate["change"],
  ) {
    let before: ApplicationRecord | undefined;
    const response = (record: ApplicationRecord) => toApplication(record);
    const record = await updateApplication(context, request, {
      ...event,
      change(current, now) {
        before = current;
        return changeOf(current, now);
      },
      target: ({ id, name }) => ({ applicationId: id, name }),
      before: () => before && stateOf(before),
      after: stateOf,
      response,
    });
    return response(record);
  }

  return {
    async createApplication(request, context) {
      const caller = callerOf(context);
      const type = request.type as ApplicationType;
      const grants = readGrants(request);
      const { expiresAt, expiryViolations } = await readExpiry(request.expiresAt, store);
      throwViolations([
        ...findOversizedGrants(grants, settings.grantsLimit),
        ...findDisallowedGrants(type, grants),
        ...findRestrictionViolations(type, request),
        ...findQuotaViolations(type, request.sessionQuota),
        ...expiryViolations,
      ]);
      const { allowedOrigins, allowedCidrs } = request;
      grantGuard.assertMayCreate(caller, {
        type,
        ...grants,
        allowedOrigins,
        allowedCidrs,
        expiresAt,
      });

      const { tenantId, id: createdBy } = caller.application;
      const id = newId(clock());
      const plaintextKey = generateKey(kindFor(type), id);
      const key = { id: newId(clock()), hash: keyring.hash(plaintextKey) };
      const response = (record: ApplicationRecord) => toApplication(record, plaintextKey);
      const record = await applications.create(
        { ...readNewFields(request), ...grants, id, tenantId, type, key, createdBy, expiresAt },
        audit(context, {
          kind: "application.created",
          target: ({ name }: ApplicationRecord) => ({ applicationId: id, keyId: key.id, name }),
          after: stateOf,
          response,
        }),
      );
      return response(record);
    },

    async updateApplication(request, context) {
      const event = { kind: "application.updated" };
      return change(context, event, request, readUpdate(request, settings));
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
      const id = request.id.toLowerCase();
      const wasDeleted = await applications.delete(
        tenantId,
        id,
        audit(context, {
          kind: "application.deleted",
          target: ({ name }: ApplicationRecord) => ({ applicationId: id, name }),
          before: stateOf,
          response: () => ({}),
        }),
        (current) =>
          withDenialTarget({ applicationId: id, name: current.name }, () => {
            assertMayAdminister(caller, current);
            assertVersion(current, request.ifMatch);
          }),
      );
      if (!wasDeleted) {
        throw applicationNotFound(id);
      }
      return {};
    },
  };
}

const conversion = { values: { time: timestampMs }, shareNested: true };

const readFields = createConverter(CreateApplicationRequestSchema, conversion);

/** Reads the fields that a request and a record have in common. An empty text is absent. */
function readNewFields(request: CreateApplicationRequest): Pick<ApplicationFields, "name"> {
  const given = Object.entries(readFields(request)).filter(([, value]) => value !== "");
  return Object.fromEntries(given) as ReturnType<typeof readNewFields>;
}

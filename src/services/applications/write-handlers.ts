import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import {
  type CreateApplicationRequest,
  CreateApplicationRequestSchema,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import { assertMayAdminister } from "../../auth/grants.js";
import { formatKey, generateSecret } from "../../auth/keys.js";
import { callerOf } from "../../call.js";
import type { ApplicationType } from "../../contract/grants.js";
import { keyTypeOf } from "../../contract/key-text.js";
import { createConverter } from "../../contract/message-converter.js";
import type { Dependencies } from "../../dependencies.js";
import { applicationNotFound } from "../../errors.js";
import { newId } from "../../lib/uuid.js";
import { type ApplicationFields, newApplication } from "../../store/port/records.js";
import { findOversizedGrants } from "../../validation/grants-size.js";
import { findQuotaViolations, findRestrictionViolations } from "../../validation/restrictions.js";
import { readExpiry } from "../../validation/time.js";
import { throwViolations } from "../../validation/validate.js";
import { findDisallowedGrants } from "../../validation/violations.js";
import { principalOf } from "../commit.js";
import { stateOf } from "../events/audit.js";
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
  commit,
  clock,
  settings,
}: Pick<Dependencies, "store" | "keyring" | "grantGuard" | "commit" | "clock" | "settings">): Pick<
  ApplicationHandlers,
  | "createApplication"
  | "updateApplication"
  | "disableApplication"
  | "enableApplication"
  | "deleteApplication"
> {
  const updateApplication = createUpdateApplication({ commit, grantGuard });

  /** Updates an application with its state before and after in the audit log. */
  function change(
    context: HandlerContext,
    request: Parameters<UpdateApplication>[1],
    kind: string,
    changeOf: ApplicationUpdate<object>["change"],
    revokes = false,
  ) {
    return updateApplication(context, request, {
      revokes,
      change: changeOf,
      event: (after, before) => ({ kind, before: stateOf(before), after: stateOf(after) }),
      reply: (after) => toApplication(after),
    });
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
      const given = { ...readNewFields(request), ...grants, tenantId, type, createdBy, expiresAt };
      const keyId = newId(clock());
      const secret = generateSecret();
      return commit(context, {
        target: { kind: "application", id: newId(clock()) },
        creates: true,
        decide({ id }, now) {
          const plaintextKey = formatKey(keyTypeOf(type), id, secret);
          const key = { id: keyId, hash: keyring.hash(plaintextKey) };
          const created = newApplication({ ...given, id, key }, now);
          return {
            put: created,
            event: {
              kind: "application.created",
              target: { ...principalOf(created), keyId },
              after: stateOf(created),
            },
            reply: toApplication(created, plaintextKey),
          };
        },
      });
    },

    async updateApplication(request, context) {
      return change(context, request, "application.updated", readUpdate(request, settings));
    },

    async disableApplication(request, context) {
      return change(context, request, "application.disabled", () => ({ disabled: true }), true);
    },

    async enableApplication(request, context) {
      return change(context, request, "application.enabled", () => ({ disabled: false }));
    },

    async deleteApplication(request, context) {
      const id = request.id.toLowerCase();
      return commit(context, {
        target: { kind: "application", id },
        revokes: true,
        decide({ target: current }) {
          if (!current) {
            throw applicationNotFound(id);
          }
          assertMayAdminister(callerOf(context), current);
          assertVersion(current, request.ifMatch);
          return {
            put: null,
            event: {
              kind: "application.deleted",
              target: principalOf(current),
              before: stateOf(current),
            },
            reply: {},
          };
        },
      });
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

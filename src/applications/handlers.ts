import type { ServiceImpl } from "@connectrpc/connect";
import type { ApplicationService } from "../../gen/latchkey/v1/application_service_pb.js";
import { callerOf } from "../caller.js";
import { applicationNotFound, invalidRequest } from "../errors.js";
import { checkGrantsSuit, type GrantGuard, readGrants } from "../grants.js";
import { newId } from "../ids.js";
import { type Keyring, kindFor, makeKey } from "../keys.js";
import { readExpiry } from "../moments.js";
import type { ApplicationType, Clock, ListQuery, Store } from "../store/store.js";
import { decodeCursor, encodeCursor } from "./cursor.js";
import { toApplication } from "./to-application.js";

const defaultPageSize = 20;

interface ApplicationHandlerOptions {
  readonly store: Store;
  readonly keyring: Keyring;
  readonly grantGuard: GrantGuard;
  readonly clock: Clock;
}

export function createApplicationHandlers({
  store,
  keyring,
  grantGuard,
  clock,
}: ApplicationHandlerOptions): ServiceImpl<typeof ApplicationService> {
  const { applications } = store;
  return {
    async createApplication(request, context) {
      const caller = callerOf(context);
      const type = request.type as ApplicationType;
      const grants = readGrants(request);
      checkGrantsSuit(type, grants);
      grantGuard.checkMayGive(caller, grants);
      const expiresAt = await readExpiry(request.expiresAt, store);

      const id = newId(clock());
      const key = makeKey(kindFor(type), id);
      const record = await applications.create({
        id,
        tenantId: caller.application.tenantId,
        name: request.name,
        type,
        ...grants,
        keyHash: keyring.hash(key),
        createdBy: caller.application.id,
        expiresAt,
      });
      return toApplication(record, key);
    },

    async listApplications(request, context) {
      const { tenantId } = callerOf(context).application;
      const { page = 1, size = defaultPageSize, start } = request;
      const { items, more, total } = await applications.list({
        tenantId,
        ids: request.id.length > 0 ? request.id.map((id) => id.toLowerCase()) : undefined,
        size,
        from: readPlace(tenantId, page, start),
      });
      const last = items.at(-1);
      return {
        pagination: {
          pageSize: size,
          ...(total !== undefined && {
            totalItems: total,
            pageNumber: page,
            totalPages: Math.ceil(total / size),
          }),
          ...(more && last && { next: encodeCursor(tenantId, last.id) }),
        },
        data: items.map((item) => toApplication(item)),
      };
    },

    async getApplication(request, context) {
      const id = request.id.toLowerCase();
      const record = await applications.find(id);
      if (record?.tenantId !== callerOf(context).application.tenantId) {
        throw applicationNotFound(id);
      }
      return toApplication(record);
    },

    getApplicationByKey(_request, context) {
      return toApplication(callerOf(context).application);
    },

    async updateApplication(request, context) {
      const caller = callerOf(context);
      const id = request.id.toLowerCase();
      const grants = readGrants(request);
      grantGuard.checkMayGive(caller, grants);

      const { tenantId } = caller.application;
      const record = await applications.update(tenantId, id, ({ type }) => {
        checkGrantsSuit(type, grants);
        return { name: request.name, ...grants, modifiedBy: caller.application.id };
      });
      if (!record) {
        throw applicationNotFound(id);
      }
      return toApplication(record);
    },

    async regenerateApplicationKey(request, context) {
      const caller = callerOf(context);
      const id = request.id.toLowerCase();

      let key = "";
      const { tenantId } = caller.application;
      const record = await applications.update(tenantId, id, (current) => {
        grantGuard.checkMayGive(caller, current);
        key = makeKey(kindFor(current.type), id);
        return { keyHash: keyring.hash(key), modifiedBy: caller.application.id };
      });
      if (!record) {
        throw applicationNotFound(id);
      }
      return toApplication(record, key);
    },

    async deleteApplication(request, context) {
      const id = request.id.toLowerCase();
      const wasThere = await applications.delete(callerOf(context).application.tenantId, id);
      if (!wasThere) {
        throw applicationNotFound(id);
      }
      return {};
    },
  };
}

function readPlace(tenantId: string, page: number, start: string | undefined): ListQuery["from"] {
  if (start === undefined) {
    return { page };
  }
  const after = decodeCursor(tenantId, start);
  if (after === undefined) {
    throw invalidRequest({
      field: "start",
      message: "is not a cursor of this list: pass the pagination.next of an earlier answer",
    });
  }
  return { after };
}

import { callerOf } from "../caller.js";
import { defaultPageSize, encodeCursor, readStart } from "../cursor.js";
import { placeOf } from "../store/application-search.js";
import { findApplication } from "./find-application.js";
import type { ApplicationHandlerOptions, ApplicationHandlers } from "./handlers.js";
import { readSearch } from "./read-search.js";
import { toApplication } from "./to-application.js";

/** What shows applications and changes nothing. */
export function createReadHandlers({
  store,
}: Pick<ApplicationHandlerOptions, "store">): Pick<
  ApplicationHandlers,
  "listApplications" | "getApplication" | "getApplicationByKey"
> {
  const { applications } = store;
  return {
    async listApplications(request, context) {
      const { tenantId } = callerOf(context).application;
      const { page = 1, size = defaultPageSize, start } = request;
      const { filter, order = "newest" } = readSearch(request);
      const { items, more, total } = await applications.list({
        tenantId,
        ids: request.id.length > 0 ? request.id.map((id) => id.toLowerCase()) : undefined,
        filter,
        order,
        size,
        from: start === undefined ? { page } : readStart(tenantId, start, order),
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
          ...(more && last && { next: encodeCursor(tenantId, placeOf(order, last), order) }),
        },
        data: items.map((item) => toApplication(item)),
      };
    },

    async getApplication(request, context) {
      return toApplication(await findApplication(applications, context, request));
    },

    getApplicationByKey(_request, context) {
      return toApplication(callerOf(context).application);
    },
  };
}

import { callerOf } from "../caller.js";
import { type Cursors, createCursors, defaultPageSize } from "../cursor.js";
import { placeOf } from "../store/application-search.js";
import type { ListOrder } from "../store/store.js";
import { findApplication } from "./find-application.js";
import type { ApplicationHandlerOptions, ApplicationHandlers } from "./handlers.js";
import { readSearch } from "./read-search.js";
import { toApplication } from "./to-application.js";

/** What shows applications and changes nothing. */
export function createReadHandlers({
  store,
  sealPlaces,
}: Pick<ApplicationHandlerOptions, "store" | "sealPlaces">): Pick<
  ApplicationHandlers,
  "listApplications" | "getApplication" | "getApplicationByKey"
> {
  const { applications } = store;
  const cursors = {
    newest: createCursors(sealPlaces, "newest"),
    name: createCursors(sealPlaces, "name"),
    expires_at: createCursors(sealPlaces, "expires_at"),
    last_used_at: createCursors(sealPlaces, "last_used_at"),
  } satisfies Record<ListOrder, Cursors>;
  return {
    async listApplications(request, context) {
      const { tenantId } = callerOf(context).application;
      const { page = 1, size = defaultPageSize, start } = request;
      const { filter, order = "newest" } = readSearch(request);
      const query = {
        tenantId,
        ids: request.id.length > 0 ? request.id.map((id) => id.toLowerCase()) : undefined,
        filter,
        order,
        size,
        from: start === undefined ? { page } : cursors[order].read(tenantId, start),
      };
      const { items, more, total } = await applications.list(query, context.signal);
      const last = items.at(-1);
      return {
        pagination: {
          pageSize: size,
          ...(total !== undefined && {
            totalItems: total,
            pageNumber: page,
            totalPages: Math.ceil(total / size),
          }),
          ...(more && last && { next: cursors[order].encode(tenantId, placeOf(order, last)) }),
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

import type { Timestamp } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import type { ListApplicationsRequest } from "../../../gen/latchkey/v1/application_service_pb.js";
import { callerOf } from "../../call.js";
import type { ApplicationType } from "../../contract/grants.js";
import type { Dependencies } from "../../dependencies.js";
import { applicationNotFound } from "../../errors.js";
import { createKeyedSemaphore } from "../../lib/concurrency.js";
import { createPace, waitForTime } from "../../lib/event-loop.js";
import {
  type ApplicationFilter,
  type ApplicationStore,
  type ListOrder,
  listPositionOf,
  toWords,
} from "../../store/port/applications.js";
import type { ApplicationRecord } from "../../store/port/records.js";
import { fromTimestamp } from "../../validation/time.js";
import {
  type Cursors,
  createCursors,
  cursorScopeOf,
  defaultPageSize,
  describeTotal,
} from "../pagination.js";
import { createFindExact } from "./find-exact.js";
import { toApplication, toApplications } from "./messages.js";
import type { ApplicationHandlers } from "./update-application.js";

/** Searches for words per tenant at a time. Each reads up to 10,000 applications. */
const concurrentSearches = 2;

/** Read-only handlers. */
export function createReadHandlers({
  store,
  keyring,
  createSealer,
}: Pick<Dependencies, "store" | "keyring" | "createSealer">): Pick<
  ApplicationHandlers,
  "listApplications" | "getApplication" | "getApplicationByKey"
> {
  const { applications } = store;
  const findExact = createFindExact(store, keyring);
  const withSearchLimit = createKeyedSemaphore(concurrentSearches);
  const cursors = {
    newest: createCursors(createSealer, "newest"),
    name: createCursors(createSealer, "name"),
    expires_at: createCursors(createSealer, "expires_at"),
    last_used_at: createCursors(createSealer, "last_used_at"),
  } satisfies Record<ListOrder, Cursors>;
  return {
    async listApplications(request, context) {
      const { tenantId } = callerOf(context).application;
      const { page = 1, size = defaultPageSize, start, q = "" } = request;
      const ids = request.id.length > 0 ? request.id.map((id) => id.toLowerCase()) : undefined;
      const exact = q === "" ? undefined : await findExact(context, q.trim());
      const words = q === "" || exact ? undefined : toWords(q);
      const { filter, order = "newest" } = readSearch(request, words);
      const scope = cursorScopeOf(context, request);
      const query = {
        tenantId,
        ids: exact && ids ? exact.filter((id) => ids.includes(id)) : (exact ?? ids),
        filter,
        order,
        size,
        from: start === undefined ? { page } : cursors[order].read(scope, start),
      };
      const list = () => {
        context.signal.throwIfAborted();
        return applications.list(query, context.signal);
      };
      const pause = waitForTime(tenantId);
      if (pause) {
        await pause;
      }
      const found = await (words ? withSearchLimit(tenantId, list) : list());
      const { items, more, total, stoppedAt } = found;
      const data = await toApplications(
        items,
        createPace(tenantId, () => context.signal.throwIfAborted()),
      );
      // Many pages may be ready at once, and encoding one takes long.
      await waitForTime(tenantId);
      const last = items.at(-1);
      const next = more && last ? listPositionOf(order, last) : stoppedAt;
      return {
        pagination: {
          pageSize: size,
          ...(start === undefined && { pageNumber: page }),
          ...describeTotal(total, size),
          ...(next && { next: cursors[order].encode(scope, next) }),
          ...(stoppedAt && { incomplete: true }),
        },
        data,
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

/** The search of a request. Empty if it lists everything, newest first. */
interface Search {
  readonly filter?: ApplicationFilter;
  readonly order?: ListOrder;
}

function readSearch(
  request: ListApplicationsRequest,
  words: readonly string[] | undefined,
): Search {
  const { type, status, permission, namePrefix, externalId } = request;
  const filter: ApplicationFilter = {
    type: type as ApplicationType | undefined,
    disabled: status === undefined ? undefined : status === "disabled",
    permission,
    namePrefix,
    externalId,
    createdBy: request.createdBy?.toLowerCase(),
    words,
    expiresBefore: readTime(request.expiresBefore, "expires_before"),
    lastUsedBefore: readTime(request.lastUsedBefore, "last_used_before"),
    neverUsed: request.neverUsed || undefined,
  };
  const isEmpty = Object.values(filter).every((value) => value === undefined);
  const order = (request.order as ListOrder | undefined) ?? defaultOrder(filter);
  return { ...(!isEmpty && { filter }), ...(order && { order }) };
}

function readTime(time: Timestamp | undefined, field: string): number | undefined {
  return time && fromTimestamp(time, field);
}

/** A filter by name or time implies the order of its field. */
function defaultOrder(filter: ApplicationFilter): ListOrder | undefined {
  const { namePrefix, expiresBefore, lastUsedBefore, neverUsed } = filter;
  if (namePrefix !== undefined) {
    return "name";
  }
  if (expiresBefore !== undefined) {
    return "expires_at";
  }
  return lastUsedBefore === undefined && !neverUsed ? undefined : "last_used_at";
}

/** Finds an application of the caller's tenant. Throws if there is none. */
export async function findApplication(
  applications: Pick<ApplicationStore, "find">,
  context: HandlerContext,
  request: { readonly id: string },
): Promise<ApplicationRecord> {
  const id = request.id.toLowerCase();
  const record = await applications.find(id);
  if (record?.tenantId !== callerOf(context).application.tenantId) {
    throw applicationNotFound(id);
  }
  return record;
}

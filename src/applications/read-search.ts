import type { Timestamp } from "@bufbuild/protobuf/wkt";
import type { ListApplicationsRequest } from "../../gen/latchkey/v1/application_service_pb.js";
import { fromTimestamp } from "../moments.js";
import type { ApplicationFilter, ApplicationType, ListOrder } from "../store/store.js";

/** What a request searches for; nothing where it asks for all, the newest first. */
export interface Search {
  readonly filter?: ApplicationFilter;
  readonly order?: ListOrder;
}

export function readSearch(request: ListApplicationsRequest): Search {
  const { type, status, permission, namePrefix } = request;
  const filter: ApplicationFilter = {
    type: type as ApplicationType | undefined,
    disabled: status === undefined ? undefined : status === "disabled",
    permission,
    namePrefix,
    expiresBefore: readMoment(request.expiresBefore, "expires_before"),
    lastUsedBefore: readMoment(request.lastUsedBefore, "last_used_before"),
  };
  const isEmpty = Object.values(filter).every((value) => value === undefined);
  const order = (request.order as ListOrder | undefined) ?? usualOrder(filter);
  return { ...(!isEmpty && { filter }), ...(order && { order }) };
}

function readMoment(moment: Timestamp | undefined, field: string): number | undefined {
  return moment && fromTimestamp(moment, field);
}

/** A search by something that has an order of its own is listed in it. */
function usualOrder(filter: ApplicationFilter): ListOrder | undefined {
  const { namePrefix, expiresBefore, lastUsedBefore } = filter;
  if (namePrefix !== undefined) {
    return "name";
  }
  if (expiresBefore !== undefined) {
    return "expires_at";
  }
  return lastUsedBefore === undefined ? undefined : "last_used_at";
}

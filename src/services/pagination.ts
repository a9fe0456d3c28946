import { type Message, toBinary } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import type { CursorSealerFactory } from "../auth/cursor-sealing.js";
import { callerOf } from "../call.js";
import { invalidRequest } from "../errors.js";
import type { ListOrder, ListPosition } from "../store/port/applications.js";

/** The lists of applications and sessions, and the type of the sort value next to the id. */
const valueTypes = {
  newest: "none",
  name: "text",
  expires_at: "number",
  last_used_at: "number",
  sessions: "none",
} as const satisfies Record<ListOrder | "sessions", string>;

export type CursorList = keyof typeof valueTypes;

/** The default number of items per page. */
export const defaultPageSize = 20;

/** The most sessions or events that are read to count them. */
export const maxCounted = 10_000;

/** The total of a list as part of its pagination. Empty if it is not known. */
export function describeTotal(total: number | undefined, size: number) {
  return total === undefined ? {} : { totalItems: total, totalPages: Math.ceil(total / size) };
}

interface TotalRequest {
  readonly includeTotal: boolean;
  readonly start?: string | undefined;
}

/** The total of a list by cursor, for its first page. A first page without a next one needs no count. */
export async function totalOf(
  { includeTotal, start }: TotalRequest,
  items: { readonly length: number },
  hasMore: boolean,
  count: () => Promise<number | undefined>,
): Promise<number | undefined> {
  if (!includeTotal || start !== undefined) {
    return undefined;
  }
  return hasMore ? count() : items.length;
}

/** The fields of a list request that may differ between its pages. */
const pageFields = { page: undefined, size: undefined, start: undefined, includeTotal: false };

/** The scope of the cursors of a list: the tenant, and the list, filters and order that a request names. */
export function cursorScopeOf(
  { method, values }: Pick<HandlerContext, "method" | "values">,
  request: Message,
): string {
  const query = toBinary(
    method.input,
    { ...request, ...pageFields },
    { writeUnknownFields: false },
  );
  const { tenantId } = callerOf({ values }).application;
  return `${tenantId} ${Buffer.from(query).toString("base64")}`;
}

/** Opaque pagination cursors. */
export interface Cursors {
  encode(scope: string, position: ListPosition): string;

  /** Decodes the `start` of a request. Throws if it is not a cursor of this list with this scope. */
  read(scope: string, start: string): ListPosition;
}

const refusal =
  "is not a cursor of this list with these filters: pass the pagination.next of an earlier response, " +
  "and repeat the filters and the order of its request";

/** Creates the encryption of a list's cursors. */
export function sealCursors(
  createSealer: CursorSealerFactory,
  list: CursorList | "events" | ShortList,
) {
  return createSealer({
    purpose: `cursor of ${list}`,
    field: "start",
    refusal,
    startAgain: "start again from the first page",
  });
}

/** Creates the cursors of a list of applications or sessions. */
export function createCursors(createSealer: CursorSealerFactory, list: CursorList): Cursors {
  const sealed = sealCursors(createSealer, list);
  return {
    encode: (scope, { after, value }) => sealed.seal(scope, `${after}${value ?? ""}`),

    read(scope, start) {
      const position = parsePosition(sealed.open(scope, start), valueTypes[list]);
      if (!position) {
        throw invalidRequest({ field: "start", message: refusal, code: "cursor" });
      }
      return position;
    },
  };
}

const idLength = 36;

/** Cursors are sealed by the service, but their content reaches the database, so it is validated as well. */
function parsePosition(
  text: string,
  type: (typeof valueTypes)[CursorList],
): ListPosition | undefined {
  const after = text.slice(0, idLength);
  const value = text.slice(idLength);
  switch (type) {
    case "none":
      return value === "" ? { after } : undefined;
    case "number":
      return /^\d{1,15}$/.test(value) ? { after, value: Number(value) } : undefined;
    case "text":
      return { after, value };
  }
}

/** Lists that are read as a whole. */
type ShortList = "keys" | "permissions";

interface ShortListRequest extends Message {
  readonly size?: number | undefined;
  readonly start?: string | undefined;
}

/** How a list is ordered. */
interface ShortListOrder<Item> {
  idOf(item: Item): string;
  /** Whether an item comes after one with this id that is no longer in the list. */
  isAfter(item: Item, id: string): boolean;
}

/** Creates the pages of a list that is read as a whole. */
export function createShortPages<Base>(
  createSealer: CursorSealerFactory,
  list: ShortList,
  { idOf, isAfter }: ShortListOrder<Base>,
) {
  const cursors = sealCursors(createSealer, list);

  function itemsAfter<Item extends Base>(items: readonly Item[], after: string): readonly Item[] {
    const index = items.findIndex((item) => idOf(item) === after);
    return index < 0 ? items.filter((item) => isAfter(item, after)) : items.slice(index + 1);
  }

  return <Item extends Base>(
    context: Pick<HandlerContext, "method" | "values">,
    items: readonly Item[],
    request: ShortListRequest,
  ) => {
    const { size = defaultPageSize, start } = request;
    const scope = cursorScopeOf(context, request);
    const after = start === undefined ? undefined : cursors.open(scope, start);
    const rest = after === undefined ? items : itemsAfter(items, after);
    const page = rest.slice(0, size);
    const last = page.at(-1);
    const pagination = {
      pageSize: size,
      ...(after === undefined && describeTotal(items.length, size)),
      ...(last && rest.length > size && { next: cursors.seal(scope, idOf(last)) }),
    };
    return { page, pagination };
  };
}

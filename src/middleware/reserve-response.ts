import type { DescMessage, DescMethod, Message } from "@bufbuild/protobuf";
import type { AuthorizedCall } from "../auth/caller.js";
import { overloaded } from "../errors.js";
import type { MaybePromise } from "../lib/async.js";
import { memoize } from "../lib/cache.js";
import type { ResponseBudget } from "../lib/response-budget.js";
import { maxPageBytes } from "../store/port/store.js";

/**
 * Creates the step that waits until there is memory for the response of a call,
 * or refuses it. Runs before the handler, so that a refused call changes nothing.
 */
export function createReserveResponse(
  budget: ResponseBudget,
): (call: Reserving, request: Message) => MaybePromise<void> {
  const kindOf = memoize(({ output }: DescMethod) => responseKindOf(output));

  function takeOver({ call, caller }: Reserving, bytes: number, isReserved: boolean): void {
    const { tenantId } = caller.application;
    const { reason } = call.cancellation;
    if (reason) {
      budget.update(tenantId, isReserved ? bytes : 0, 0);
      throw reason;
    }
    if (!isReserved) {
      throw overloaded();
    }
    call.reserveResponse(tenantId, bytes);
  }

  async function takeOverLater(
    reserving: Reserving,
    bytes: number,
    reservation: Promise<boolean>,
  ): Promise<void> {
    takeOver(reserving, bytes, await reservation);
  }

  // Every call passes it, so it creates no closure.
  return (reserving, request) => {
    const { call, caller } = reserving;
    const bytes = expectedSize(kindOf(call.method), request);
    if (bytes === undefined) {
      return undefined;
    }
    const reservation = budget.reserve(caller.application.tenantId, bytes, call.cancellation);
    return typeof reservation === "boolean"
      ? takeOver(reserving, bytes, reservation)
      : takeOverLater(reserving, bytes, reservation);
  };
}

type Reserving = Pick<AuthorizedCall, "call" | "caller">;

/** How large a response may become: a page of records, anything of unknown size, or always small. */
type ResponseKind = "page" | "unknown" | "small";

function responseKindOf(output: DescMessage): ResponseKind {
  const { fields } = output;
  if (!hasRepeated(output)) {
    return "small";
  }
  const isList = fields.some(({ name }) => name === "pagination");
  const hasRecords = fields.some(({ message }) => message && hasRepeatedMessages(message));
  return isList && hasRecords ? "page" : "unknown";
}

/** The bytes to reserve per record of a list: a record with the largest grants, and its metadata. */
const maxRecordBytes = 256 * 1024;

/**
 * The bytes to reserve for a response before it is built: for a list, its page. The sizes of
 * others, short lists included, are counted when they are known. `undefined` if none is needed.
 */
function expectedSize(kind: ResponseKind, request: Message): number | undefined {
  if (kind === "page") {
    const { size = Number.POSITIVE_INFINITY } = request as { size?: number };
    return Math.min(maxPageBytes, size * maxRecordBytes);
  }
  return kind === "unknown" ? 0 : undefined;
}

function hasRepeated({ fields }: DescMessage): boolean {
  return fields.some(
    ({ fieldKind, message }) =>
      fieldKind === "list" || fieldKind === "map" || (message && hasRepeated(message)),
  );
}

/** Whether a message has lists of messages, such as rules. */
function hasRepeatedMessages({ fields }: DescMessage): boolean {
  return fields.some(
    ({ fieldKind, message }) => message && (fieldKind === "list" || hasRepeatedMessages(message)),
  );
}

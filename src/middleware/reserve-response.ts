import { type DescMessage, type DescMethod, getOption, type Message } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { replayable } from "../../gen/latchkey/v1/options_pb.js";
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
  const kindOf = memoize(responseKindOf);

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
    const { tenantId } = caller.application;
    const kind = kindOf(call.method);
    if (kind === "small") {
      return undefined;
    }
    if (kind === "change") {
      return call.reserveResponse(tenantId, 0);
    }
    const bytes = kind === "page" ? pageBytes(request) : 0;
    const reservation = budget.reserve(tenantId, bytes, call.cancellation);
    return typeof reservation === "boolean"
      ? takeOver(reserving, bytes, reservation)
      : takeOverLater(reserving, bytes, reservation);
  };
}

type Reserving = Pick<AuthorizedCall, "call" | "caller">;

/**
 * How a call waits for the memory of its response: for a page of records, or for anything, as the
 * size is counted when it is known. A change never waits, so that nobody can delay a revocation,
 * and neither does a call whose response is always small.
 */
type ResponseKind = "page" | "unknown" | "change" | "small";

function responseKindOf(method: DescMethod): ResponseKind {
  const { output } = method;
  const { fields } = output;
  if (!hasRepeated(output)) {
    return "small";
  }
  if (isChange(method)) {
    return "change";
  }
  const isList = fields.some(({ name }) => name === "pagination");
  const hasRecords = fields.some(({ message }) => message && hasRepeatedMessages(message));
  return isList && hasRecords ? "page" : "unknown";
}

/** The bytes to reserve per record of a list: a record with the largest grants, and its metadata. */
const maxRecordBytes = 256 * 1024;

function isChange(method: DescMethod): boolean {
  const isIdempotent = method.idempotency === MethodOptions_IdempotencyLevel.IDEMPOTENT;
  return isIdempotent || getOption(method, replayable);
}

/** The bytes to reserve for a page before it is built. */
function pageBytes(request: Message): number {
  const { size = Number.POSITIVE_INFINITY } = request as { size?: number };
  return Math.min(maxPageBytes, size * maxRecordBytes);
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

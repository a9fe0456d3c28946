import type { DescMessage, DescMethod, Message } from "@bufbuild/protobuf";
import type { AuthorizedCall } from "../call.js";
import { overloaded } from "../errors.js";
import type { MaybePromise } from "../lib/async.js";
import { memoize } from "../lib/cache.js";
import type { ResponseBudget, ResponseOwner } from "../lib/response-budget.js";
import { maxPageBytes } from "../store/port/store.js";

/**
 * Creates the step that waits until there is memory to build a list, or refuses it. Other calls
 * never wait, so that nobody can delay a revocation: their responses count when they are sent.
 */
export function createReserveResponse(
  budget: ResponseBudget,
): (call: Reserving, request: Message) => MaybePromise<void> {
  const kindOf = memoize(responseKindOf);

  async function reserve(reserving: Reserving, owner: ResponseOwner, request: Message) {
    const { call } = reserving;
    const reservation = budget.reserve(owner, pageBytes(request), call.cancellation);
    const reserved = await reservation;
    const { reason } = call.cancellation;
    if (reason) {
      reserved?.release();
      throw reason;
    }
    if (!reserved) {
      throw overloaded();
    }
    call.countResponseFor(owner, reserved);
    if (reservation instanceof Promise) {
      // The key may have been revoked in the meantime.
      await reserving.reauthorize();
    }
  }

  return (reserving, request) => {
    const { call, caller } = reserving;
    const { application, session } = caller;
    const owner = { tenant: application.tenantId, caller: (session ?? application).id };
    return kindOf(call.method) === "page"
      ? reserve(reserving, owner, request)
      : call.countResponseFor(owner);
  };
}

type Reserving = Pick<AuthorizedCall, "call" | "caller" | "reauthorize">;

/** Whether a method returns a page of records, which is large while it is built. */
function responseKindOf({ output: { fields } }: DescMethod): "page" | "other" {
  const isList = fields.some(({ name }) => name === "pagination");
  const hasRecords = fields.some(({ message }) => message && hasRepeatedMessages(message));
  return isList && hasRecords ? "page" : "other";
}

/** Whether a message has lists of messages, such as rules. */
function hasRepeatedMessages({ fields }: DescMessage): boolean {
  return fields.some(
    ({ fieldKind, message }) => message && (fieldKind === "list" || hasRepeatedMessages(message)),
  );
}

/** The bytes to reserve per record of a list: a record with the largest grants, and its metadata. */
const maxRecordBytes = 256 * 1024;

/** The bytes to reserve for a page before it is built. */
function pageBytes(request: Message): number {
  const { size = Number.POSITIVE_INFINITY } = request as { size?: number };
  return Math.min(maxPageBytes, size * maxRecordBytes);
}

import type { DescMessage, DescMethod } from "@bufbuild/protobuf";
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
): (call: Reserving) => MaybePromise<void> {
  const sizeOf = memoize((method: DescMethod) => ({ bytes: expectedSize(method.output) }));

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
  return (reserving) => {
    const { call, caller } = reserving;
    const { bytes } = sizeOf(call.method);
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

/**
 * The bytes to reserve for a response before it is built: a page for a list. The
 * sizes of other responses are counted when they are known. `undefined` if a
 * response is always small, because nothing in it repeats.
 */
function expectedSize(output: DescMessage): number | undefined {
  if (output.fields.some(({ name }) => name === "pagination")) {
    return maxPageBytes;
  }
  return hasRepeated(output) ? 0 : undefined;
}

function hasRepeated({ fields }: DescMessage): boolean {
  return fields.some(
    ({ fieldKind, message }) =>
      fieldKind === "list" || fieldKind === "map" || (message && hasRepeated(message)),
  );
}

import type { DescMessage, DescMethod } from "@bufbuild/protobuf";
import type { AuthorizedCall } from "../auth/caller.js";
import { overloaded } from "../errors.js";
import { type MaybePromise, mapMaybePromise } from "../lib/async.js";
import { memoize } from "../lib/cache.js";
import type { ResponseBudget } from "../lib/response-budget.js";
import { maxPageBytes } from "../store/port/store.js";

/**
 * Creates the step that waits until there is memory for the response of a call,
 * or refuses it. Runs before the handler, so that a refused call changes nothing.
 */
export function createReserveResponse(
  budget: ResponseBudget,
): (call: Pick<AuthorizedCall, "call" | "caller">) => MaybePromise<void> {
  const sizeOf = memoize((method: DescMethod) => ({ bytes: expectedSize(method.output) }));

  return ({ call, caller }) => {
    const { bytes } = sizeOf(call.method);
    if (bytes === undefined) {
      return undefined;
    }
    const { tenantId } = caller.application;
    const { cancellation } = call;
    return mapMaybePromise(budget.reserve(tenantId, bytes, cancellation), (isReserved) => {
      if (cancellation.reason) {
        budget.update(tenantId, isReserved ? bytes : 0, 0);
        throw cancellation.reason;
      }
      if (!isReserved) {
        throw overloaded();
      }
      call.reserveResponse(tenantId, bytes);
    });
  };
}

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

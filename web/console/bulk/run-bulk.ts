import { problemOf } from "../../../src/contract/problem-report.js";
import { describeErrors } from "../validation/field-errors.js";

export interface BulkItem {
  readonly id: string;
  readonly name: string;
}

export interface BulkResult<Item extends BulkItem = BulkItem> {
  readonly item: Item;
  /** Why it failed. */
  readonly reason?: string;
  /** It no longer exists, so a retry cannot succeed. */
  readonly isGone?: boolean;
  /** The new key of an application. Keep it in memory only. */
  readonly key?: string;
}

/** Acts on one item. Returns its new key, if any. */
export type Act<Item> = (item: Item) => Promise<string | undefined>;

/** Few, because each call takes part of the rate limit of the signed-in key. */
const concurrency = 4;

/** Acts on all items, a few at a time. Calls `onResult` for each. Starts no more once the signal aborts. */
export async function runBulk<Item extends BulkItem>(
  items: readonly Item[],
  act: Act<Item>,
  signal: AbortSignal,
  onResult: (result: BulkResult<Item>) => void,
): Promise<void> {
  const waiting = [...items];
  async function work(): Promise<void> {
    for (let item = waiting.shift(); item && !signal.aborted; item = waiting.shift()) {
      onResult(await resultOf(item, act));
    }
  }
  await Promise.all(Array.from({ length: concurrency }, work));
}

async function resultOf<Item extends BulkItem>(
  item: Item,
  act: Act<Item>,
): Promise<BulkResult<Item>> {
  try {
    const key = await act(item);
    return key === undefined ? { item } : { item, key };
  } catch (thrown) {
    const { detail, errors, code } = problemOf(thrown);
    const fields = Object.entries(errors).map(([path, messages]) => describeErrors(path, messages));
    const isGone = code === "application_not_found" || code === "session_not_found";
    return { item, isGone, reason: fields.length > 0 ? fields.join(". ") : detail };
  }
}

import { createHash } from "node:crypto";

/**
 * A call on a record, or one step of it that takes effect at one moment, with what the caller
 * learned. Times are by one monotonic clock.
 */
export interface Operation<State> {
  readonly startedAt: number;
  /** Infinite if the outcome is unknown: it takes effect at any time after its start, or never. */
  readonly endedAt: number;
  /** Whether it never changes the record. */
  readonly isRead: boolean;
  /**
   * Returns the state of the record after the operation took effect in `state`, or `undefined` if
   * its outcome is impossible there. A state is plain JSON, and returned itself if it is unchanged.
   */
  readonly apply: (state: State) => State | undefined;
  /** Returns false if it will never be possible after `state`. It spares the search of such states. */
  readonly isReachableFrom?: (state: State) => boolean;
}

/** A part of a history that no sequential order explains. */
export interface Violation<O> {
  /** The operations up to the first moment at which no order exists, without needless reads. */
  readonly operations: readonly O[];
  /** The operation that ended at that moment. */
  readonly culprit: O;
  /** An order that explains all that ended before. Operations that it lacks had no effect yet. */
  readonly order: readonly O[];
}

/**
 * Checks that a record is linearizable: one sequential order explains all outcomes, and each
 * operation takes effect between its start and its end.
 */
export function findViolation<State, O extends Operation<State>>(
  initial: State,
  history: readonly O[],
): Violation<O> | undefined {
  const isExplained = (until?: number) => isLinearizable(initial, history, until) === true;
  if (isExplained()) {
    return undefined;
  }
  const ending = history
    .filter(({ endedAt }) => endedAt !== Number.POSITIVE_INFINITY)
    .sort((a, b) => a.endedAt - b.endedAt);
  const endAt = (index: number) => ending[index]?.endedAt ?? Number.NEGATIVE_INFINITY;
  // Every prefix of a linearizable history is linearizable.
  let [explained, unexplained] = [-1, ending.length - 1];
  while (unexplained - explained > 1) {
    const middle = (explained + unexplained) >> 1;
    [explained, unexplained] = isExplained(endAt(middle))
      ? [middle, unexplained]
      : [explained, middle];
  }
  if (isLinearizable(initial, history, endAt(unexplained)) === undefined) {
    throw new SearchTooLarge(`${unexplained + 1} operations have too many possible orders`);
  }
  const culprit = ending[unexplained] as O;
  const operations = withoutNeedlessReads(initial, history, culprit);
  return { operations, culprit, order: findOrder(initial, operations, endAt(explained)) ?? [] };
}

function withoutNeedlessReads<State, O extends Operation<State>>(
  initial: State,
  history: readonly O[],
  culprit: O,
): readonly O[] {
  let needed = history
    .filter(({ startedAt }) => startedAt <= culprit.endedAt)
    .sort((a, b) => a.startedAt - b.startedAt);
  const reads = needed.filter((operation) => operation.isRead && operation !== culprit);
  for (let size = reads.length; size >= 1; size = Math.floor(size / 2)) {
    for (let at = 0; at < reads.length; at += size) {
      const left = new Set(reads.slice(at, at + size));
      const others = needed.filter((operation) => !left.has(operation));
      const decided = isLinearizable(initial, others, culprit.endedAt, maxShrinkVisits);
      if (others.length < needed.length && decided === false) {
        needed = others;
      }
    }
  }
  return needed;
}

/** Returns `undefined` if there are too many possible orders to decide. */
function isLinearizable<State, O extends Operation<State>>(
  initial: State,
  operations: readonly O[],
  until?: number,
  visits?: number,
): boolean | undefined {
  try {
    return findOrder(initial, operations, until, visits) !== undefined;
  } catch (error) {
    if (error instanceof SearchTooLarge) {
      return undefined;
    }
    throw error;
  }
}

const hash = (text: string) => createHash("sha1").update(text).digest("base64");

/** The history has too many possible orders to decide. */
export class SearchTooLarge extends Error {}

/** The maximum number of visited states, to decide and to leave out reads. */
const maxVisits = 300_000;
const maxShrinkVisits = 5_000;

/**
 * Returns an order that explains the operations that started until a moment. The outcomes of those
 * that ended later are optional. This is the search of Wing and Gong, with the memo of Lowe: what
 * follows depends only on the operations that took effect and on the state.
 */
export function findOrder<State, O extends Operation<State>>(
  initial: State,
  history: readonly O[],
  until = Number.POSITIVE_INFINITY,
  visits = maxVisits,
): readonly O[] | undefined {
  const endOf = ({ endedAt }: O) => (endedAt > until ? Number.POSITIVE_INFINITY : endedAt);
  // Tries operations in the order of their ends, and optional ones last.
  const operations = history
    .filter(({ startedAt }) => startedAt <= until)
    .sort((a, b) => endOf(a) - endOf(b) || a.startedAt - b.startedAt);
  const required = operations.filter((operation) => endOf(operation) < Number.POSITIVE_INFINITY);
  const revealing = required.flatMap(({ isReachableFrom }, index) =>
    isReachableFrom ? [[index, isReachableFrom] as const] : [],
  );
  const hasEffect = operations.map(() => false);
  const order: O[] = [];
  const failed = new Set<string>();

  function extend(state: State): boolean {
    // The required operations come first, by their end.
    const next = hasEffect.indexOf(false);
    if (next === -1 || next >= required.length) {
      return true;
    }
    if (revealing.some(([index, isReachable]) => !hasEffect[index] && !isReachable(state))) {
      return false;
    }
    const key = hash(`${hasEffect.map(Number).join("")} ${JSON.stringify(state)}`);
    if (failed.has(key)) {
      return false;
    }
    if (failed.size >= visits) {
      throw new SearchTooLarge(`${history.length} operations have too many possible orders`);
    }
    // Nothing takes effect after the end of an operation that must have taken effect before it.
    const firstEnd = endOf(operations[next] as O);
    const steps: { index: number; after: State }[] = [];
    for (const [index, operation] of operations.entries()) {
      if (!hasEffect[index] && operation.startedAt <= firstEnd) {
        const after = operation.apply(state);
        if (operation.isRead && after === state) {
          // A read that is possible now never needs to take effect later.
          steps.splice(0, steps.length, { index, after: state });
          break;
        }
        if (after !== undefined) {
          steps.push({ index, after });
        }
      }
    }
    for (const { index, after } of steps) {
      hasEffect[index] = true;
      order.push(operations[index] as O);
      if (extend(after)) {
        return true;
      }
      hasEffect[index] = false;
      order.pop();
    }
    failed.add(key);
    return false;
  }

  return extend(initial) ? order : undefined;
}

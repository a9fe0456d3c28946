/** Keeps count of what bodies hold in memory, all of them together. */
export interface BodyBudget {
  /** Notes that a body which held so many bytes now holds others. Answers whether there was room; a body may always shrink. */
  change(before: number, now: number): boolean;
}

/** Bodies of up to so many bytes are not counted: they are most, and even very many of them take little. */
const uncounted = 16 * 1024;

/**
 * Creates a budget of so many bytes. What one body may be has a limit of its
 * own, but those that arrive and never end would add up.
 */
export function createBodyBudget(limit: number): BodyBudget {
  let held = 0;
  return {
    change(before, now) {
      const more = counted(now) - counted(before);
      const others = held - counted(before);
      // One that is alone has its own limit, and need not fear that of all.
      if (more > 0 && others > 0 && held + more > limit) {
        return false;
      }
      held += more;
      return true;
    },
  };
}

function counted(bytes: number): number {
  return bytes > uncounted ? bytes : 0;
}

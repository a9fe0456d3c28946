import type { EventFilter } from "../store/events.js";

/** The filter in a request, with ids as they are stored. */
export function readFilter({ target, actor, kind }: EventFilter): EventFilter {
  return { target: target?.toLowerCase(), actor: actor?.toLowerCase(), kind };
}

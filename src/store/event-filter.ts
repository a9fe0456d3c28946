import type { EventFilter, EventRecord, Party } from "./events.js";

/** Whether an event is one that is asked for. */
export function isWanted(event: EventRecord, { target, actor, kind }: EventFilter): boolean {
  return (
    (kind === undefined || event.kind === kind) &&
    (target === undefined || isOneOf(event.target, target)) &&
    (actor === undefined || isOneOf(event.actor, actor))
  );
}

function isOneOf(party: Party | undefined, id: string): boolean {
  return party?.applicationId === id || party?.sessionId === id || party?.keyId === id;
}

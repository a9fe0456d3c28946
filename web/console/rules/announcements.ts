import type { Announcements, UniqueIdentifier } from "@dnd-kit/core";

export const moveInstructions =
  "Press space or enter to pick the rule up, the arrow keys to move it, space or enter again to put it down, escape to leave it where it was.";

/** What a screen reader says while a rule is moved. */
export function announceMoves(
  ids: readonly string[],
  nameOf: (id: UniqueIdentifier) => string,
): Announcements {
  const placeOf = (id: UniqueIdentifier) => `${ids.indexOf(String(id)) + 1} of ${ids.length}`;
  const held = (id: UniqueIdentifier) => `Holding ${nameOf(id)}, tried as ${placeOf(id)}.`;
  return {
    onDragStart: ({ active }) => held(active.id),
    onDragOver: ({ active, over }) => {
      // A rule that was picked up is at once over its own place.
      if (over?.id === active.id) {
        return held(active.id);
      }
      return over ? `${nameOf(active.id)} would be tried as ${placeOf(over.id)}.` : undefined;
    },
    onDragEnd: ({ active, over }) =>
      `${nameOf(active.id)} is now tried as ${placeOf((over ?? active).id)}.`,
    onDragCancel: ({ active }) =>
      `${nameOf(active.id)} stays where it was, tried as ${placeOf(active.id)}.`,
  };
}

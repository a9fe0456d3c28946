import {
  type Announcements,
  closestCenter,
  DndContext,
  type DragEndEvent,
  KeyboardSensor,
  type Modifier,
  PointerSensor,
  type UniqueIdentifier,
  useSensor,
  useSensors,
} from "@dnd-kit/core";
import {
  arrayMove,
  SortableContext,
  sortableKeyboardCoordinates,
  verticalListSortingStrategy,
} from "@dnd-kit/sortable";
import type { AccessRule } from "../../../gen/latchkey/v1/access_rule_pb.js";
import { errorsWithin } from "../validation/field-errors.js";
import type { FieldErrors } from "../validation/validate.js";
import { RuleCard } from "./rule-card.js";
import {
  nameOfRule,
  type RuleIds,
  type RuleKind,
  renumbered,
  sortByPriority,
} from "./rule-list.js";

interface SortableRulesProps {
  readonly rules: readonly AccessRule[];
  readonly ids: RuleIds;
  /** The ids of new rules. */
  readonly added: readonly string[];
  readonly kind: RuleKind;
  readonly errors: FieldErrors;
  onChange(rules: AccessRule[]): void;
  onDuplicate(rule: AccessRule): void;
  onRemove(rule: AccessRule): void;
}

/** Cards of the rules in evaluation order, moved by mouse or keyboard. */
export default function SortableRules(props: SortableRulesProps) {
  const { rules, ids, added, kind, errors, onChange, onDuplicate, onRemove } = props;
  const shown = sortByPriority(rules);
  const shownIds = shown.map(ids.of);

  function move({ active, over }: DragEndEvent): void {
    const from = shownIds.indexOf(String(active.id));
    const to = shownIds.indexOf(String(over?.id));
    if (to !== -1 && from !== to) {
      onChange(renumbered(arrayMove(shown, from, to), ids.change));
    }
  }

  return (
    <DndContext
      sensors={useSensors(
        useSensor(PointerSensor),
        useSensor(KeyboardSensor, { coordinateGetter: sortableKeyboardCoordinates }),
      )}
      collisionDetection={closestCenter}
      modifiers={[verticalOnly]}
      onDragEnd={move}
      accessibility={{
        announcements: announceMoves(shownIds, (id) => describeRule(shown, shownIds, String(id))),
        screenReaderInstructions: { draggable: moveInstructions },
      }}
    >
      <SortableContext items={shownIds} strategy={verticalListSortingStrategy}>
        <ol aria-label="Rules, in evaluation order">
          {shown.map((rule, index) => {
            const id = ids.of(rule);
            const ruleIndex = rules.indexOf(rule);
            return (
              <RuleCard
                key={id}
                id={id}
                rule={rule}
                position={index + 1}
                kind={kind}
                isNew={added.includes(id)}
                errors={errorsWithin(errors, `rules[${ruleIndex}]`)}
                onChange={(fields) => onChange(rules.with(ruleIndex, ids.change(rule, fields)))}
                onDuplicate={() => onDuplicate(rule)}
                onRemove={() => onRemove(rule)}
              />
            );
          })}
        </ol>
      </SortableContext>
    </DndContext>
  );
}

const verticalOnly: Modifier = ({ transform }) => ({ ...transform, x: 0 });

function describeRule(rules: readonly AccessRule[], ids: readonly string[], id: string): string {
  const rule = rules[ids.indexOf(id)];
  return rule ? `rule “${nameOfRule(rule)}”` : "the rule";
}

const moveInstructions =
  "Press Space or Enter to pick up the rule, the arrow keys to move it, Space or Enter to drop it, Escape to cancel.";

/** Announcements for screen readers. */
function announceMoves(
  ids: readonly string[],
  nameOf: (id: UniqueIdentifier) => string,
): Announcements {
  const positionOf = (id: UniqueIdentifier) => `${ids.indexOf(String(id)) + 1} of ${ids.length}`;
  const pickedUp = (id: UniqueIdentifier) => `Picked up ${nameOf(id)}, position ${positionOf(id)}.`;
  return {
    onDragStart: ({ active }) => pickedUp(active.id),
    onDragOver: ({ active, over }) => {
      // A rule starts over its own position.
      if (over?.id === active.id) {
        return pickedUp(active.id);
      }
      return over ? `${nameOf(active.id)} moves to position ${positionOf(over.id)}.` : undefined;
    },
    onDragEnd: ({ active, over }) =>
      `${nameOf(active.id)} dropped at position ${positionOf((over ?? active).id)}.`,
    onDragCancel: ({ active }) =>
      `Move canceled. ${nameOf(active.id)} stays at position ${positionOf(active.id)}.`,
  };
}

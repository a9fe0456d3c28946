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
import { Plus } from "lucide-react";
import { useRef, useState } from "react";
import type { AccessRule } from "../../../gen/latchkey/v1/access_rule_pb.js";
import { Button } from "../ui/buttons.js";
import { errorsWithin } from "../validation/field-errors.js";
import type { FieldErrors } from "../validation/validate.js";
import { RuleCard } from "./rule-card.js";
import {
  duplicateOf,
  nameOfRule,
  newRule,
  type RuleKind,
  renumbered,
  sortByPriority,
} from "./rule-list.js";
import "./rules.css";

interface RuleEditorProps {
  readonly rules: readonly AccessRule[];
  onChange(rules: AccessRule[]): void;
  readonly kind: RuleKind;
  /** By path in the request: `rules[0].container`. */
  readonly errors: FieldErrors;
}

/** Edits rules in evaluation order. */
export function RuleEditor({ rules, onChange, kind, errors }: RuleEditorProps) {
  const ids = useRuleIds();
  const [added, setAdded] = useState<readonly string[]>([]);
  const addButton = useRef<HTMLButtonElement>(null);
  const shown = sortByPriority(rules);
  const shownIds = shown.map(ids.of);

  function add(rule: AccessRule): void {
    setAdded([...added, ids.of(rule)]);
    onChange([...rules, rule]);
  }

  function remove(rule: AccessRule): void {
    onChange(rules.filter((other) => other !== rule));
    addButton.current?.focus();
  }

  function move({ active, over }: DragEndEvent): void {
    const from = shownIds.indexOf(String(active.id));
    const to = shownIds.indexOf(String(over?.id));
    if (to !== -1 && from !== to) {
      onChange(renumbered(arrayMove(shown, from, to), ids.change));
    }
  }

  return (
    <div className="rule-editor">
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
                  onDuplicate={() => add(duplicateOf(rule, rules))}
                  onRemove={() => remove(rule)}
                />
              );
            })}
          </ol>
        </SortableContext>
      </DndContext>
      {rules.length === 0 && <p className="muted">No rules yet.</p>}
      {errors.rules && <p className="field-error">{errors.rules.join(" · ")}</p>}
      <div>
        <Button ref={addButton} icon={Plus} onClick={() => add(newRule(kind, rules))}>
          Add rule
        </Button>
      </div>
    </div>
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

/** Stable ids for rules while they are edited and moved. */
interface RuleIds {
  of(rule: AccessRule): string;
  /** Returns a changed copy with the same id. */
  change(rule: AccessRule, fields: Partial<AccessRule>): AccessRule;
}

function createRuleIds(): RuleIds {
  const ids = new WeakMap<AccessRule, string>();
  let count = 0;

  function of(rule: AccessRule): string {
    const id = ids.get(rule) ?? `rule-${++count}`;
    ids.set(rule, id);
    return id;
  }

  return {
    of,
    change(rule, fields) {
      const changed = { ...rule, ...fields };
      ids.set(changed, of(rule));
      return changed;
    },
  };
}

function useRuleIds(): RuleIds {
  const [ids] = useState(createRuleIds);
  return ids;
}

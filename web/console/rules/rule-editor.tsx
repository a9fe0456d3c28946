import {
  closestCenter,
  DndContext,
  type DragEndEvent,
  KeyboardSensor,
  type Modifier,
  PointerSensor,
  useSensor,
  useSensors,
} from "@dnd-kit/core";
import {
  arrayMove,
  SortableContext,
  sortableKeyboardCoordinates,
  verticalListSortingStrategy,
} from "@dnd-kit/sortable";
import { useRef, useState } from "react";
import type { AccessRule } from "../../../gen/latchkey/v1/access_rule_pb.js";
import { errorsWithin } from "../validation/field-errors.js";
import type { FieldErrors } from "../validation/validate.js";
import { announceMoves, moveInstructions } from "./announcements.js";
import { RuleCard } from "./rule-card.js";
import { useRuleIds } from "./rule-ids.js";
import { duplicateOf, inOrder, newRule, type RuleKind, renumbered } from "./rule-list.js";
import { nameOfRule } from "./rule-words.js";
import "./rules.css";

interface RuleEditorProps {
  readonly rules: readonly AccessRule[];
  onChange(rules: AccessRule[]): void;
  readonly kind: RuleKind;
  /** By the paths of the message that the rules are in: `rules[0].container`. */
  readonly errors: FieldErrors;
  /** Names of permissions to choose from. */
  readonly suggestions: readonly string[];
}

/** Rules in the order in which they are tried, to be added, changed, moved and removed. */
export function RuleEditor({ rules, onChange, kind, errors, suggestions }: RuleEditorProps) {
  const ids = useRuleIds();
  const [added, setAdded] = useState<readonly string[]>([]);
  const addButton = useRef<HTMLButtonElement>(null);
  const shown = inOrder(rules);
  const shownIds = shown.map(ids.of);

  function add(rule: AccessRule): void {
    setAdded([...added, ids.of(rule)]);
    onChange([...rules, rule]);
  }

  function remove(rule: AccessRule): void {
    onChange(rules.filter((kept) => kept !== rule));
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
        modifiers={[upAndDown]}
        onDragEnd={move}
        accessibility={{
          announcements: announceMoves(shownIds, (id) => nameIn(shown, shownIds, String(id))),
          screenReaderInstructions: { draggable: moveInstructions },
        }}
      >
        <SortableContext items={shownIds} strategy={verticalListSortingStrategy}>
          <ol aria-label="Rules, in the order in which they are tried">
            {shown.map((rule, place) => {
              const id = ids.of(rule);
              const at = rules.indexOf(rule);
              return (
                <RuleCard
                  key={id}
                  id={id}
                  rule={rule}
                  place={place + 1}
                  kind={kind}
                  isNew={added.includes(id)}
                  errors={errorsWithin(errors, `rules[${at}]`)}
                  suggestions={suggestions}
                  onChange={(fields) => onChange(rules.with(at, ids.change(rule, fields)))}
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
        <button
          ref={addButton}
          type="button"
          className="button"
          onClick={() => add(newRule(kind, rules))}
        >
          Add rule
        </button>
      </div>
    </div>
  );
}

const upAndDown: Modifier = ({ transform }) => ({ ...transform, x: 0 });

function nameIn(rules: readonly AccessRule[], ids: readonly string[], id: string): string {
  const rule = rules[ids.indexOf(id)];
  return rule ? `rule “${nameOfRule(rule)}”` : "the rule";
}

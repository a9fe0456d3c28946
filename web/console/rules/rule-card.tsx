import { useSortable } from "@dnd-kit/sortable";
import { CSS } from "@dnd-kit/utilities";
import { GripVertical } from "lucide-react";
import { type RefObject, type SyntheticEvent, useEffect, useId, useRef, useState } from "react";
import type { AccessRule } from "../../../gen/latchkey/v1/access_rule_pb.js";
import { countOf } from "../../common/count.js";
import { Button } from "../ui/buttons.js";
import { Badge } from "../ui/display.js";
import { Field, FieldErrorText } from "../ui/fields.js";
import type { FieldErrors } from "../validation/validate.js";
import { RuleFields } from "./rule-fields.js";
import { nameOfRule, type RuleKind, scopeInWords } from "./rule-list.js";

interface RuleCardProps {
  readonly id: string;
  readonly rule: AccessRule;
  /** One-based position in evaluation order. */
  readonly position: number;
  readonly kind: RuleKind;
  readonly isNew: boolean;
  /** By path within the rule. */
  readonly errors: FieldErrors;
  onChange(fields: Partial<AccessRule>): void;
  onDuplicate(): void;
  onRemove(): void;
}

/** A rule that can be moved, and opened for editing. */
export function RuleCard(props: RuleCardProps) {
  const { id, rule, position, isNew, onChange, onDuplicate, onRemove } = props;
  const [isOpen, setIsOpen] = useState(isNew);
  const sortable = useSortable({ id });
  const card = useRef<HTMLFieldSetElement>(null);
  const visible = useVisibleErrors(props.errors, isNew, card);
  const bodyId = useId();

  useEffect(() => {
    if (isNew) {
      card.current?.querySelector<HTMLElement>("[data-field] input")?.focus();
    }
  }, [isNew]);

  return (
    <li
      ref={sortable.setNodeRef}
      data-moving={sortable.isDragging}
      style={{
        transform: CSS.Translate.toString(sortable.transform),
        transition: sortable.transition,
      }}
    >
      <fieldset
        ref={card}
        className="rule-card"
        aria-label={`Rule ${position}`}
        onChange={visible.visit}
        onBlur={visible.visit}
      >
        <div className="rule-line">
          <button
            {...sortable.attributes}
            {...sortable.listeners}
            ref={sortable.setActivatorNodeRef}
            type="button"
            className="rule-handle"
            aria-label={`Move rule ${position}, ${nameOfRule(rule)}`}
          >
            <GripVertical size={16} aria-hidden />
          </button>
          <div className="rule-title">
            <strong>{nameOfRule(rule)}</strong>
            <span className="muted">
              {rule.description !== undefined && `${scopeInWords(rule)}: `}
              {rule.permissions.join(", ") || "no permissions yet"}
            </span>
          </div>
          <Badge>{rule.transform}</Badge>
          <ErrorCount errors={visible.errors} />
          <Button
            tone="quiet"
            aria-expanded={isOpen}
            aria-controls={bodyId}
            aria-label={`${isOpen ? "Close" : "Edit"} rule ${position}`}
            onClick={() => setIsOpen(!isOpen)}
          >
            {isOpen ? "Close" : "Edit"}
          </Button>
        </div>
        <div id={bodyId} className="rule-body" hidden={!isOpen}>
          {isOpen && (
            <>
              <FieldErrorText label="Rule" errors={visible.errors[""]} />
              <RuleFields {...props} errors={visible.errors} />
              <div className="rule-footer" data-field="priority">
                <PriorityInput
                  value={rule.priority}
                  errors={visible.errors.priority}
                  onChange={(priority) => onChange({ priority })}
                />
                <div className="actions">
                  <Button onClick={onDuplicate}>Duplicate</Button>
                  <Button tone="danger" onClick={onRemove}>
                    Remove
                  </Button>
                </div>
              </div>
            </>
          )}
        </div>
      </fieldset>
    </li>
  );
}

/** Also visible while the rule is closed. */
function ErrorCount({ errors }: { readonly errors: FieldErrors }) {
  const count = Object.values(errors).flat().length;
  return count === 0 ? null : <Badge tone="danger">{countOf(count, "error")}</Badge>;
}

interface PriorityInputProps {
  readonly value: number;
  readonly errors: readonly string[] | undefined;
  onChange(priority: number): void;
}

/** Applies the priority on blur or Enter, because the rule may then move. */
function PriorityInput({ value, errors, onChange }: PriorityInputProps) {
  const [draft, setDraft] = useState(String(value));
  useEffect(() => setDraft(String(value)), [value]);

  function commit(): void {
    const priority = Math.trunc(Number(draft));
    if (priority !== value) {
      onChange(priority);
    }
  }

  return (
    <Field label="Priority" errors={errors}>
      {(control) => (
        <input
          {...control}
          type="number"
          inputMode="numeric"
          value={draft}
          onChange={({ target }) => setDraft(target.value)}
          onBlur={commit}
          onKeyDown={(event) => {
            if (event.key === "Enter") {
              event.preventDefault();
              commit();
            }
          }}
        />
      )}
    </Field>
  );
}

interface VisibleErrors {
  readonly errors: FieldErrors;
  /** Marks the field of the event as visited. */
  visit(event: SyntheticEvent): void;
}

/** Hides errors of unvisited fields in a new rule until the form is submitted. */
function useVisibleErrors(
  all: FieldErrors,
  isNew: boolean,
  inForm: RefObject<HTMLElement | null>,
): VisibleErrors {
  const [visited, setVisited] = useState<readonly string[]>([]);
  const [showsAll, setShowsAll] = useState(!isNew);

  useEffect(() => {
    const form = inForm.current?.closest("form");
    const showAll = () => setShowsAll(true);
    form?.addEventListener("submit", showAll);
    return () => form?.removeEventListener("submit", showAll);
  }, [inForm]);

  // Items of a list were entered.
  const isVisible = (field: string) =>
    field === "" || field.endsWith("]") || visited.includes(field);
  const visible = Object.entries(all).filter(([field]) => showsAll || isVisible(field));
  return {
    errors: Object.fromEntries(visible),
    visit({ type, target }) {
      const field = (target as Element).closest<HTMLElement>("[data-field]")?.dataset.field;
      // A name that is being typed is not in the list yet.
      const isDraft = type === "change" && field === "permissions";
      if (field !== undefined && !isDraft && !visited.includes(field)) {
        setVisited([...visited, field]);
      }
    },
  };
}

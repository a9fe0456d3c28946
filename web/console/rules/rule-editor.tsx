import { Plus } from "lucide-react";
import { Suspense, useRef, useState } from "react";
import type { AccessRule } from "../../../gen/latchkey/v1/access_rule_pb.js";
import { FieldErrorText } from "../ui/fields.js";
import { lazyComponent, OpenButton } from "../ui/lazy.js";
import { ErrorBoundary } from "../ui/page.js";
import type { FieldErrors } from "../validation/validate.js";
import { createRuleIds, duplicateOf, newRule, type RuleKind } from "./rule-list.js";

const SortableRules = lazyComponent(() => import("./sortable-rules.js"));

interface RuleEditorProps {
  readonly rules: readonly AccessRule[];
  onChange(rules: AccessRule[]): void;
  readonly kind: RuleKind;
  /** By path in the request: `rules[0].container`. */
  readonly errors: FieldErrors;
}

/** Edits rules in evaluation order. */
export function RuleEditor({ rules, onChange, kind, errors }: RuleEditorProps) {
  const [ids] = useState(createRuleIds);
  const [added, setAdded] = useState<readonly string[]>([]);
  const addButton = useRef<HTMLButtonElement>(null);

  function add(rule: AccessRule): void {
    setAdded([...added, ids.of(rule)]);
    onChange([...rules, rule]);
  }

  function remove(rule: AccessRule): void {
    onChange(rules.filter((other) => other !== rule));
    addButton.current?.focus();
  }

  return (
    <div className="rule-editor">
      <ErrorBoundary fallback={<RulesNotShown />}>
        {rules.length === 0 ? (
          <p className="muted">No rules yet.</p>
        ) : (
          <Suspense fallback={<p className="muted">Loading…</p>}>
            <SortableRules
              rules={rules}
              ids={ids}
              added={added}
              kind={kind}
              errors={errors}
              onChange={onChange}
              onDuplicate={(rule) => add(duplicateOf(rule, rules))}
              onRemove={remove}
            />
          </Suspense>
        )}
        <FieldErrorText label="Rules" errors={errors.rules} />
        <div>
          <OpenButton
            script={SortableRules}
            ref={addButton}
            icon={Plus}
            onOpen={() => add(newRule(kind, rules))}
          >
            Add rule
          </OpenButton>
        </div>
      </ErrorBoundary>
    </div>
  );
}

function RulesNotShown() {
  return (
    <p role="alert" className="field-error">
      The rules cannot be shown. Save your other changes, then reload the page.
    </p>
  );
}

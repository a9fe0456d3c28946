import type { ReactNode } from "react";
import { Grants } from "../../rules/grants.js";
import { Button } from "../../ui/buttons.js";
import { Chips, Notice } from "../../ui/display.js";
import { labelOf } from "../../validation/field-errors.js";
import { type Draft, type DraftField, fieldName } from "./draft.js";

/** Shown when the application was changed in the meantime. */
export function ConflictNotice({ onLoad }: { onLoad(): void }) {
  return (
    <Notice role="alert" tone="warning">
      <p>
        This application was changed since you opened it, perhaps in another tab. Your changes are
        not saved. Load the latest version to merge them.
      </p>
      <div className="actions">
        <Button onClick={onLoad}>Load latest version</Button>
      </div>
    </Notice>
  );
}

interface MergedNoticeProps {
  /** Fields that both sides changed. */
  readonly conflicts: readonly DraftField[];
  readonly saved: Draft;
  onTake(field: DraftField): void;
}

/** Shows the saved values of fields that both sides changed. */
export function MergedNotice({ conflicts, saved, onTake }: MergedNoticeProps) {
  return (
    <Notice role="status" tone="good">
      <p>
        The latest version is loaded and your changes are kept.
        {conflicts.length > 0 &&
          " These fields were also changed elsewhere. The form shows your values. The saved values are:"}
      </p>
      {conflicts.map((field) => {
        const label = labelOf(fieldName(field));
        return (
          <section key={field} className="conflict" aria-label={label}>
            <h2>{label}</h2>
            <Saved field={field} saved={saved} />
            <div className="actions">
              <Button onClick={() => onTake(field)}>Use the saved {label}</Button>
            </div>
          </section>
        );
      })}
    </Notice>
  );
}

function Saved({ field, saved }: { readonly field: DraftField; readonly saved: Draft }): ReactNode {
  switch (field) {
    case "permissions":
      return <SavedNames names={saved.permissions} />;
    case "rules":
      return <Grants permissions={[]} rules={saved.rules} />;
    case "metadata":
      return <SavedNames names={saved.metadata.map(({ key, value }) => `${key}=${value}`)} />;
    case "expiresAt":
      return <p>{saved.expiresAt.date.replace("T", " ") || "never"}</p>;
    default:
      return <p className="multiline">{saved[field] || "none"}</p>;
  }
}

function SavedNames({ names }: { readonly names: readonly string[] }) {
  return names.length === 0 ? <p>none</p> : <Chips names={names} />;
}

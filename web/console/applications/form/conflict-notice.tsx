import type { ReactNode } from "react";
import { Grants } from "../../rules/grants.js";
import { Button } from "../../ui/buttons.js";
import { Chips } from "../../ui/display.js";
import type { Draft, DraftField } from "./draft.js";

/** Says that what is being edited is no longer what is saved. */
export function ConflictNotice({ onLoad }: { onLoad(): void }) {
  return (
    <div role="alert" className="notice" data-tone="warning">
      <p>
        Someone has changed this application since you opened it, perhaps in another tab. Nothing of
        yours is saved. Load the new state: what you have entered is kept.
      </p>
      <div className="actions">
        <Button onClick={onLoad}>Load the new state</Button>
      </div>
    </div>
  );
}

const labels: Readonly<Partial<Record<DraftField, string>>> = {
  name: "Name",
  permissions: "Permissions",
  rules: "Rules",
  allowedOrigins: "Web pages",
  allowedCidrs: "Networks",
  sessionQuota: "Session quota",
};

interface MergedNoticeProps {
  /** What both have changed. */
  readonly conflicts: readonly DraftField[];
  /** What is saved. */
  readonly saved: Draft;
  onTake(field: DraftField): void;
}

/** Shows what others have made of the fields that the person has changed as well. */
export function MergedNotice({ conflicts, saved, onTake }: MergedNoticeProps) {
  return (
    <div role="status" className="notice" data-tone="good">
      <p>
        The new state is loaded, and what you have entered is kept.
        {conflicts.length > 0 && " These were changed by both. Yours stand below; saved are:"}
      </p>
      {conflicts.map((field) => (
        <section key={field} className="contested" aria-label={labels[field]}>
          <h2>{labels[field]}</h2>
          <Saved field={field} saved={saved} />
          <div className="actions">
            <Button onClick={() => onTake(field)}>Take the saved {labels[field]}</Button>
          </div>
        </section>
      ))}
    </div>
  );
}

function Saved({ field, saved }: { readonly field: DraftField; readonly saved: Draft }): ReactNode {
  switch (field) {
    case "permissions":
      return <Chips names={saved.permissions} />;
    case "rules":
      return <Grants permissions={[]} rules={saved.rules} />;
    case "name":
    case "allowedOrigins":
    case "allowedCidrs":
    case "sessionQuota":
      return <p className="saved-text">{saved[field] || "none"}</p>;
    default:
      return null;
  }
}

import { Pencil } from "lucide-react";
import { type ReactNode, useEffect, useRef } from "react";
import type { Application } from "../../../../gen/latchkey/v1/application_service_pb.js";
import { useSignedInKey } from "../../sign-in/signed-in-key.js";
import { Card } from "../../ui/display.js";
import { lazyComponent, OpenButton } from "../../ui/lazy.js";
import type { Section } from "./section-form.js";

export const SectionForm = lazyComponent(() => import("./section-form.js"));

/** The section of the page that is being edited. There is at most one. */
export interface Editing {
  readonly section: Section | undefined;
  setSection(section: Section | undefined): void;
}

interface EditableCardProps {
  readonly label: Section;
  /** The latest version on the service. */
  readonly application: Application;
  readonly editing: Editing;
  /** The section while it is not edited. */
  readonly children: ReactNode;
}

/** A section of an application that is edited in place. */
export function EditableCard({ label, application, editing, children }: EditableCardProps) {
  const { may } = useSignedInKey();
  const { section, setSection } = editing;
  const isEditing = section === label;
  const editButton = useRef<HTMLButtonElement>(null);
  const wasEditing = useRef(false);
  useEffect(() => {
    if (wasEditing.current && !isEditing) {
      editButton.current?.focus();
    }
    wasEditing.current = isEditing;
  }, [isEditing]);
  return (
    <Card
      label={label}
      actions={
        section === undefined &&
        may("application:update") && (
          <OpenButton
            script={SectionForm}
            ref={editButton}
            tone="quiet"
            size="small"
            icon={Pencil}
            aria-label={`Edit ${label.toLowerCase()}`}
            onOpen={() => setSection(label)}
          >
            Edit
          </OpenButton>
        )
      }
    >
      {isEditing ? (
        <SectionForm
          label={label}
          application={application}
          onClose={() => setSection(undefined)}
        />
      ) : (
        children
      )}
    </Card>
  );
}

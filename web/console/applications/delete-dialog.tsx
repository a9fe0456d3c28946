import { useState } from "react";
import { useLocation } from "wouter";
import {
  type Application,
  ApplicationService,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import { useClient } from "../access/use-client.js";
import { ConfirmDialog } from "../ui/confirm-dialog.js";
import { Field } from "../ui/field.js";
import { useRefresh } from "../ui/use-refresh.js";
import { OwnKeyWarning } from "./own-key-warning.js";

interface DeleteDialogProps {
  readonly application: Application;
  onClose(): void;
}

/** Deletes an application, once its name was typed. */
export function DeleteDialog({ application, onClose }: DeleteDialogProps) {
  const { id, name, version: ifMatch } = application;
  const [typed, setTyped] = useState("");
  const [, navigate] = useLocation();
  const applications = useClient(ApplicationService);
  const refresh = useRefresh();
  async function remove(): Promise<void> {
    await applications.deleteApplication({ id, ifMatch });
    navigate("/applications", { replace: true });
    refresh();
  }
  return (
    <ConfirmDialog
      title={`Delete “${name}”?`}
      confirm="Delete for good"
      isBlocked={typed !== name}
      act={remove}
      onClose={onClose}
    >
      <p>
        Its keys, and those of the sessions that it opened or authorized, stop working at once. This
        cannot be undone: to stop them for a while, disable it.
      </p>
      <OwnKeyWarning id={id} />
      <Field label="Type its name to delete it" hint={<code>{name}</code>}>
        {(props) => (
          <input
            {...props}
            autoComplete="off"
            spellCheck={false}
            value={typed}
            onChange={({ target }) => setTyped(target.value)}
          />
        )}
      </Field>
    </ConfirmDialog>
  );
}

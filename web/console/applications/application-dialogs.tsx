import { useState } from "react";
import { useLocation } from "wouter";
import {
  type Application,
  ApplicationService,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import { useAccess } from "../access/access.js";
import { useClient } from "../access/connection.js";
import { ConfirmDialog } from "../ui/dialog.js";
import { Field } from "../ui/fields.js";
import { useRefresh } from "../ui/hooks.js";

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

interface StatusDialogProps {
  readonly application: Application;
  onClose(): void;
}

/** Lets the keys of an application work no more for now, or again. */
export function StatusDialog({ application, onClose }: StatusDialogProps) {
  const { id, version: ifMatch, status } = application;
  const applications = useClient(ApplicationService);
  const refresh = useRefresh();
  if (status === "disabled") {
    const enable = async () => {
      await applications.enableApplication({ id, ifMatch });
      refresh();
    };
    return (
      <ConfirmDialog
        title={`Enable “${application.name}”?`}
        confirm="Enable"
        tone="primary"
        act={enable}
        onClose={onClose}
      >
        <p>
          Its keys work again, and so do those of the sessions that it opened or authorized, unless
          they have ended meanwhile.
        </p>
      </ConfirmDialog>
    );
  }
  const disable = async () => {
    await applications.disableApplication({ id, ifMatch });
    refresh();
  };
  return (
    <ConfirmDialog
      title={`Disable “${application.name}”?`}
      confirm="Disable"
      act={disable}
      onClose={onClose}
    >
      <p>
        Its keys, and those of the sessions that it opened or authorized, are refused from now on,
        until it is enabled again. Nothing else about it changes.
      </p>
      <OwnKeyWarning id={id} />
    </ConfirmDialog>
  );
}

/** Warns whoever is about to shut the door behind which they stand. */
export function OwnKeyWarning({ id }: { readonly id: string }) {
  const { me } = useAccess();
  return me.applicationId === id ? (
    <p className="notice" data-tone="warning">
      You are signed in with a key of this application. Where that stops working you are signed out.
    </p>
  ) : null;
}

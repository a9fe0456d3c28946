import { useState } from "react";
import { useLocation } from "wouter";
import {
  type Application,
  ApplicationService,
} from "../../../gen/latchkey/v1/application_service_pb.js";
import { useClient } from "../sign-in/connection.js";
import { useAccess } from "../sign-in/signed-in-key.js";
import { ConfirmDialog } from "../ui/dialog.js";
import { Field } from "../ui/fields.js";
import { useRefresh } from "../ui/hooks.js";

interface DeleteDialogProps {
  readonly application: Application;
  onClose(): void;
}

/** Deletes an application after its name was typed. */
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
      confirm="Delete permanently"
      isBlocked={typed !== name}
      act={remove}
      onClose={onClose}
    >
      <p>
        Its keys and the sessions that it opened or authorized stop working immediately. This cannot
        be undone. To block it temporarily, disable it instead.
      </p>
      <OwnKeyWarning id={id} />
      <Field label="Type the name to confirm" hint={<code>{name}</code>}>
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

/** Disables an application, or enables it again. */
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
          Its keys work again, and so do the sessions that it opened or authorized, unless they have
          expired.
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
        Its keys and the sessions that it opened or authorized are refused until it is enabled
        again.
      </p>
      <OwnKeyWarning id={id} />
    </ConfirmDialog>
  );
}

/** Warns about changes that affect the key in use. */
export function OwnKeyWarning({ id }: { readonly id: string }) {
  const { me } = useAccess();
  return me.applicationId === id ? (
    <p className="notice" data-tone="warning">
      You are signed in with a key of this application. You are signed out when it stops working.
    </p>
  ) : null;
}

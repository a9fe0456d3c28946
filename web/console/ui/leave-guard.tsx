import { type ReactNode, useLayoutEffect, useState } from "react";
import type { AroundNavHandler } from "wouter";
import { Button } from "./buttons.js";
import { Dialog } from "./dialog.js";

type Leave = () => void;

/** Prompts for confirmation, then navigates. */
type Confirm = (leave: Leave) => void;

interface Guard {
  readonly here: string;
  readonly confirm: Confirm;
}

/** Undefined if there are no unsaved changes. */
let guard: Guard | undefined;

/** For the router: confirms before it leaves unsaved changes. */
export const guardedNavigate: AroundNavHandler = (navigate, to, options) =>
  leavePage(() => navigate(to, options));

/** Leaves the page. Prompts for confirmation first if there are unsaved changes. */
export function leavePage(leave: Leave): void {
  if (guard) {
    guard.confirm(leave);
  } else {
    leave();
  }
}

// Must be registered before the listener of the router.
addEventListener("popstate", (event) => {
  if (guard) {
    // The browser has already navigated: hide it from the router and restore the URL.
    event.stopImmediatePropagation();
    const target = location.href;
    history.pushState(null, "", guard.here);
    guard.confirm(() => history.pushState(null, "", target));
  }
});

interface LeaveGuardProps {
  readonly isOn: boolean;
  readonly title: string;
  readonly children: ReactNode;
}

/** Prompts for confirmation before the user leaves the page. */
export function LeaveGuard({ isOn, title, children }: LeaveGuardProps) {
  const [leave, setLeave] = useState<Leave>();
  useLayoutEffect(() => (isOn ? guardPage((next) => setLeave(() => next)) : undefined), [isOn]);
  if (!leave) {
    return null;
  }
  const stay = () => setLeave(undefined);
  return (
    <Dialog title={title} onClose={stay}>
      {children}
      <div className="dialog-actions">
        <Button tone="primary" onClick={stay}>
          Stay
        </Button>
        <Button
          tone="danger"
          onClick={() => {
            stay();
            leave();
          }}
        >
          Leave
        </Button>
      </div>
    </Dialog>
  );
}

/** Guards navigation and unload. Returns a function that removes the guard. */
function guardPage(confirm: Confirm): () => void {
  const own: Guard = { here: location.href, confirm };
  const onUnload = (event: BeforeUnloadEvent) => event.preventDefault();
  guard = own;
  addEventListener("beforeunload", onUnload);
  return () => {
    guard = guard === own ? undefined : guard;
    removeEventListener("beforeunload", onUnload);
  };
}

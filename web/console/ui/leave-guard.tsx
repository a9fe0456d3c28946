import { type ReactNode, useLayoutEffect, useRef, useState } from "react";
import type { AroundNavHandler } from "wouter";
import { Button } from "./buttons.js";
import { Dialog } from "./dialog.js";

type Leave = () => void;

/** Prompts for confirmation, then navigates. */
type Confirm = (leave: Leave) => void;

interface Guard {
  readonly here: string;
  readonly confirm: Confirm;
  onLeave(): void;
}

/** The guards that are on, the newest last: a new key can be shown above an unsaved form. */
const guards: Guard[] = [];

/** For the router: confirms before it leaves unsaved changes. */
export const guardedNavigate: AroundNavHandler = (navigate, to, options) =>
  leavePage(() => navigate(to, options));

/** Leaves the page. First, each guard prompts for confirmation, the newest first. */
export function leavePage(leave: Leave): void {
  const prompting = [...guards];
  prompting.reduce<Leave>(
    (next, guard) => () => guard.confirm(next),
    () => {
      // Nothing is dropped until all have agreed.
      for (const guard of prompting) {
        guard.onLeave();
      }
      leave();
    },
  )();
}

// Must be registered before the listener of the router.
addEventListener("popstate", (event) => {
  const guard = guards.at(-1);
  if (guard) {
    // The browser has already navigated: hide it from the router and restore the URL.
    event.stopImmediatePropagation();
    const target = location.href;
    history.pushState(null, "", guard.here);
    leavePage(() => history.pushState(null, "", target));
  }
});

interface LeaveGuardProps {
  readonly isOn: boolean;
  readonly title: string;
  readonly children: ReactNode;
  /** Called before the page is left, once every prompt is confirmed. */
  onLeave?(): void;
}

/** Prompts for confirmation before the user leaves the page. */
export function LeaveGuard({ isOn, title, children, onLeave }: LeaveGuardProps) {
  const [leave, setLeave] = useState<Leave>();
  const latest = useRef(onLeave);
  latest.current = onLeave;
  useLayoutEffect(() => {
    if (isOn) {
      return guardPage(
        (next) => setLeave(() => next),
        () => latest.current?.(),
      );
    }
  }, [isOn]);
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
function guardPage(confirm: Confirm, onLeave: () => void): () => void {
  const own: Guard = { here: location.href, confirm, onLeave };
  const onUnload = (event: BeforeUnloadEvent) => event.preventDefault();
  guards.push(own);
  addEventListener("beforeunload", onUnload);
  return () => {
    guards.splice(guards.indexOf(own), 1);
    removeEventListener("beforeunload", onUnload);
  };
}

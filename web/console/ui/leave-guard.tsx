import { type ReactNode, useLayoutEffect, useState } from "react";
import type { AroundNavHandler } from "wouter";
import { Button } from "./buttons.js";
import { Dialog } from "./dialog.js";

type Leave = () => void;

/** Asks the person, who may then leave. */
type Ask = (leave: Leave) => void;

interface Guard {
  /** The address of the page. */
  readonly here: string;
  readonly ask: Ask;
}

/** Absent where nothing would be lost. */
let guard: Guard | undefined;

/** For the router: takes people elsewhere, after they were asked where something would be lost. */
export const guardedNavigate: AroundNavHandler = (navigate, to, options) => {
  const leave = () => navigate(to, options);
  if (guard) {
    guard.ask(leave);
  } else {
    leave();
  }
};

// Windows call their listeners in the order in which they came: this one has to be there before that of the router.
addEventListener("popstate", (event) => {
  if (guard) {
    // The browser has gone back already: the router is not told, and the address is put right.
    event.stopImmediatePropagation();
    const wanted = location.href;
    history.pushState(null, "", guard.here);
    guard.ask(() => history.pushState(null, "", wanted));
  }
});

interface LeaveGuardProps {
  /** Whether something would be lost. */
  readonly isOn: boolean;
  readonly title: string;
  /** What would be lost. */
  readonly children: ReactNode;
}

/** Keeps people on a page until they say that what they would lose there may go. */
export function LeaveGuard({ isOn, title, children }: LeaveGuardProps) {
  const [leave, setLeave] = useState<Leave>();
  useLayoutEffect(() => (isOn ? guardPage((wish) => setLeave(() => wish)) : undefined), [isOn]);
  if (!leave) {
    return null;
  }
  const stay = () => setLeave(undefined);
  return (
    <Dialog title={title} onClose={stay}>
      {children}
      <div className="actions">
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

/** Stands in the ways out of the page, and answers how to clear them again. */
function guardPage(askPerson: Ask): () => void {
  const mine: Guard = { here: location.href, ask: askPerson };
  const onUnload = (event: BeforeUnloadEvent) => event.preventDefault();
  guard = mine;
  addEventListener("beforeunload", onUnload);
  return () => {
    guard = guard === mine ? undefined : guard;
    removeEventListener("beforeunload", onUnload);
  };
}

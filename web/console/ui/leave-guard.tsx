import { type ReactNode, useLayoutEffect, useState } from "react";
import type { AroundNavHandler } from "wouter";
import { Button } from "./button.js";
import { Dialog } from "./dialog.js";

type Leave = () => void;

/** Asks the person, who may then leave. Absent where nothing would be lost. */
let ask: ((leave: Leave) => void) | undefined;

/** For the router: takes people elsewhere, after they were asked where something would be lost. */
export const leaveGuarded: AroundNavHandler = (navigate, to, options) => {
  const leave = () => navigate(to, options);
  (ask ?? ((go) => go()))(leave);
};

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
function guardPage(askPerson: (leave: Leave) => void): () => void {
  const here = location.href;
  const onUnload = (event: BeforeUnloadEvent) => event.preventDefault();
  /** The browser has gone back already: the router is not told, and the address is put right. */
  function onBack(event: PopStateEvent): void {
    event.stopImmediatePropagation();
    const wanted = location.href;
    history.pushState(null, "", here);
    askPerson(() => history.pushState(null, "", wanted));
  }
  ask = askPerson;
  addEventListener("beforeunload", onUnload);
  addEventListener("popstate", onBack, { capture: true });
  return () => {
    ask = ask === askPerson ? undefined : ask;
    removeEventListener("beforeunload", onUnload);
    removeEventListener("popstate", onBack, { capture: true });
  };
}

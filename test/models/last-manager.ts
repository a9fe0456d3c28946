import type { Model } from "./checker.js";

/**
 * Of the managers of a tenant, one must remain. A change that ends one (disable, delete, fewer permissions) relies on
 * another: it touches that one first (a new version, if it still manages), then writes its own on condition that nothing
 * has changed or touched it since it was read.
 */
interface State {
  managers: boolean[];
  changes: Change[];
  enables: { readonly manager: number; isDone: boolean }[];
  /** Of the design with marks: by which change a manager is marked, or -1. */
  marks: number[];
  crashes: number;
}

interface Change {
  readonly manager: number;
  is: "reading" | "touching" | "writing" | "clearing" | "done" | "refused" | "killed";
  other: number;
  /** The own manager has the version that was read. */
  isCurrent: boolean;
  /** Nobody has touched it since. */
  isUntouched: boolean;
}

export type LastManagerBug =
  | "touches a manager that is disabled"
  | "touches after its own write"
  | "writes although it was touched"
  | "marks that expire"
  | "marks that do not expire";

interface Options {
  readonly managers: number;
  /** For each change, the manager that it ends. */
  readonly changes: readonly number[];
  /** For each concurrent enable, its manager. */
  readonly enables?: readonly number[];
  readonly bug?: LastManagerBug;
}

export function lastManager({ managers, changes, enables = [], bug }: Options): Model<State> {
  const hasMarks = bug === "marks that expire" || bug === "marks that do not expire";
  const isLate = bug === "touches after its own write";
  const isOver = ({ is }: Change) => is === "done" || is === "refused" || is === "killed";
  const changed = (state: State, manager: number) => {
    for (const change of state.changes) {
      change.isCurrent &&= change.manager !== manager;
    }
  };
  const startOver = (change: Change) =>
    Object.assign(change, { is: "reading", other: -1, isCurrent: false, isUntouched: false });

  return {
    initial: {
      managers: Array.from({ length: managers }, () => true),
      changes: changes.map((manager) => ({
        manager,
        is: "reading",
        other: -1,
        isCurrent: false,
        isUntouched: false,
      })),
      enables: enables.map((manager) => ({ manager, isDone: false })),
      marks: Array.from({ length: managers }, () => -1),
      crashes: 1,
    },
    next(state, step) {
      state.changes.forEach((change, index) => {
        const { manager, other } = change;
        const at = (label: string, act: (copy: State, mine: Change) => unknown) =>
          step(`change ${index} of manager ${manager}: ${label}`, (copy) =>
            act(copy, copy.changes[index] as Change),
          );

        if (change.is !== "reading" && !isOver(change) && state.crashes > 0) {
          at("CRASH", (copy, mine) => {
            copy.crashes--;
            Object.assign(mine, { is: "killed", other: -1, isCurrent: false, isUntouched: false });
          });
        }
        if (change.is === "reading") {
          const others = state.managers.flatMap((isEnabled, position) =>
            isEnabled && position !== manager ? position : [],
          );
          if (!state.managers[manager] || others.length === 0) {
            at("has nothing to do, or is refused", (_, mine) => {
              mine.is = "refused";
            });
            return;
          }
          for (const candidate of others) {
            at(`reads, relies on manager ${candidate}`, (_, mine) => {
              Object.assign(mine, {
                is: isLate ? "writing" : "touching",
                other: candidate,
                isCurrent: true,
                isUntouched: true,
              });
            });
          }
        }
        if (change.is === "touching") {
          at(`touches manager ${other}`, (copy, mine) => {
            if (hasMarks) {
              if (!copy.managers[other] || ![-1, index].includes(copy.marks[other] as number)) {
                return startOver(mine);
              }
              copy.marks[other] = index;
            } else if (!copy.managers[other] && bug !== "touches a manager that is disabled") {
              return startOver(mine);
            }
            for (const one of copy.changes) {
              one.isUntouched &&= one.manager !== other || hasMarks;
            }
            mine.is = isLate ? "done" : "writing";
          });
        }
        if (change.is === "writing") {
          at("conditional write", (copy, mine) => {
            const isAllowed = hasMarks
              ? copy.marks[manager] === -1
              : mine.isUntouched || bug === "writes although it was touched";
            if (!mine.isCurrent || !isAllowed || !copy.managers[manager]) {
              startOver(mine);
              mine.is = hasMarks ? "clearing" : "reading";
              mine.other = hasMarks ? other : -1;
              return;
            }
            copy.managers[manager] = false;
            changed(copy, manager);
            mine.is = isLate ? "touching" : hasMarks ? "clearing" : "done";
          });
        }
        if (change.is === "clearing") {
          at(`clears its mark on manager ${other}`, (copy, mine) => {
            if (copy.marks[other] === index) {
              copy.marks[other] = -1;
            }
            startOver(mine);
          });
        }
      });

      state.enables.forEach(({ manager, isDone }, index) => {
        if (!isDone) {
          step(`manager ${manager} is enabled`, (copy) => {
            (copy.enables[index] as State["enables"][number]).isDone = true;
            if (!copy.managers[manager]) {
              copy.managers[manager] = true;
              changed(copy, manager);
            }
          });
        }
      });
      if (bug === "marks that expire") {
        state.marks.forEach((mark, manager) => {
          if (mark >= 0) {
            step(`the mark on manager ${manager} expires`, (copy) => {
              copy.marks[manager] = -1;
            });
          }
        });
      }
    },
    invariants: {
      oneManagerRemains: ({ managers: all }) => all.includes(true) || "no manager remains",
    },
    reachable: {
      everyChangeEnds: { to: ({ changes: all }) => all.every(isOver) },
      aChangeSucceedsWhileAnotherManagerRemains: {
        from: ({ changes: [change], managers: all }) =>
          change !== undefined &&
          !isOver(change) &&
          all[change.manager] === true &&
          all.filter(Boolean).length > 1,
        to: ({ changes: [change], managers: all }) =>
          !all[change?.manager ?? 0] || all.filter(Boolean).length < 2,
      },
    },
  };
}

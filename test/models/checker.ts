/**
 * An explicit-state model checker. It visits every state that a model can reach, breadth first, so that the trace of a
 * violation is a shortest one.
 *
 * A state is plain JSON, and its text identifies it: create all fields at once and keep their order. A value that only
 * grows, such as a version, makes the state space infinite: model it as a flag ("changed since it was read").
 * `step` takes one atomic step on a copy of the state. A slow or paused process needs no step of its own, since any
 * other process may act between two steps. A crash does, because it loses memory.
 */
export interface Model<State> {
  readonly initial: State;
  next(state: State, step: Step<State>): void;
  /** Must hold in every state. A text describes the violation. */
  readonly invariants: Readonly<Record<string, (state: State) => true | string>>;
  /** From every state that matches `from`, a state that matches `to` must stay reachable. */
  readonly reachable?: Readonly<Record<string, Goal<State>>>;
}

export interface Goal<State> {
  from?(state: State): boolean;
  to(state: State): boolean;
}

/** `change` modifies the copy, or returns false if the step is not possible. */
export type Step<State> = (label: string, change: (state: State) => unknown) => void;

export interface Verdict {
  /** The violated property, or undefined if all hold. */
  readonly violated?: string;
  readonly detail?: string;
  /** The labels of the steps from the initial state. */
  readonly trace: readonly string[];
  readonly finalState?: string;
  readonly states: number;
}

export function check<State>(model: Model<State>, maxStates = 3_000_000): Verdict {
  const indexes = new Map<string, number>();
  const texts: string[] = [];
  const labels: string[] = [];
  const parents: number[] = [];
  const predecessors: number[][] = [];
  const invariants = Object.entries(model.invariants);
  const goals = Object.entries(model.reachable ?? {});
  const reached: number[][] = goals.map(() => []);
  const waiting: number[][] = goals.map(() => []);
  let violation: readonly [name: string, detail: string, index: number] | undefined;

  function add(state: State, parent: number, label: string): void {
    const text = JSON.stringify(state);
    const known = indexes.get(text);
    if (known !== undefined) {
      predecessors[known]?.push(parent);
      return;
    }
    const index = texts.push(text) - 1;
    indexes.set(text, index);
    labels.push(label);
    parents.push(parent);
    if (goals.length > 0) {
      predecessors.push(parent < 0 ? [] : [parent]);
    }
    for (const [name, holds] of invariants) {
      const result = violation ?? holds(state);
      if (typeof result === "string") {
        violation = [name, result, index];
      }
    }
    for (const [position, [, { from, to }]] of goals.entries()) {
      if (to(state)) {
        reached[position]?.push(index);
      } else if (!from || from(state)) {
        waiting[position]?.push(index);
      }
    }
  }

  function report([violated, detail, last]: NonNullable<typeof violation>): Verdict {
    const trace: string[] = [];
    for (let index = last; index > 0; index = parents[index] as number) {
      trace.unshift(labels[index] as string);
    }
    return { violated, detail, trace, finalState: texts[last] as string, states: texts.length };
  }

  add(model.initial, -1, "");
  for (let index = 0; index < texts.length && !violation; index++) {
    const text = texts[index] as string;
    model.next(JSON.parse(text), (label, change) => {
      const state = JSON.parse(text) as State;
      if (change(state) !== false) {
        add(state, index, label);
      }
    });
    if (texts.length > maxStates) {
      throw new Error(`The model has more than ${maxStates} states.`);
    }
  }
  if (violation) {
    return report(violation);
  }
  for (const [position, [name]] of goals.entries()) {
    const canReach = leadingTo(reached[position] as number[], predecessors);
    const lost = waiting[position]?.find((index) => !canReach[index]);
    if (lost !== undefined) {
      return report([name, "From here it can never be reached.", lost]);
    }
  }
  return { trace: [], states: texts.length };
}

function leadingTo(found: readonly number[], predecessors: readonly number[][]): Uint8Array {
  const marked = new Uint8Array(predecessors.length);
  const open = [...found];
  for (const index of found) {
    marked[index] = 1;
  }
  for (let index = open.pop(); index !== undefined; index = open.pop()) {
    for (const predecessor of predecessors[index] as number[]) {
      if (marked[predecessor] === 0) {
        marked[predecessor] = 1;
        open.push(predecessor);
      }
    }
  }
  return marked;
}

/** Throws with the shortest trace if a property is violated. */
export function expectToHold<State>(model: Model<State>): void {
  const verdict = check(model);
  if (verdict.violated !== undefined) {
    throw new Error(describeViolation(verdict));
  }
}

/** Throws unless the checker finds a violation of this property. */
export function expectToViolate<State>(model: Model<State>, property: string): void {
  const verdict = check(model);
  if (verdict.violated !== property) {
    const found =
      verdict.violated === undefined
        ? `All properties hold in ${verdict.states} states.`
        : describeViolation(verdict);
    throw new Error(`Expected a violation of ${property}. ${found}`);
  }
}

function describeViolation({ violated, detail, trace, finalState }: Verdict): string {
  const steps = trace.map((label, index) => `${String(index + 1).padStart(3)}. ${label}`);
  return [`${violated} is violated: ${detail}`, ...steps, `Final state: ${finalState}`].join("\n");
}

import { findViolation, type Operation, type Violation } from "./linearizability.js";

/** A call as people read it in a timeline. Times are by `performance.now()`. */
export interface RecordedCall {
  readonly client: string;
  /** The instance and protocol of its last attempt. */
  readonly endpoint: string;
  readonly request: string;
  readonly outcome: string;
  readonly startedAt: number;
  /** When the caller learned the outcome, or gave up. */
  readonly endedAt: number;
  readonly isUnknown: boolean;
}

/** A part of a call that takes effect at one moment. */
export type Step<State> = Pick<Operation<State>, "isRead" | "apply" | "isReachableFrom">;

export interface RecordedStep<State> extends Operation<State> {
  readonly call: RecordedCall;
}

type Apply<State> = Step<State>["apply"];

export const read = <State>(apply: Apply<State>): Step<State> => ({ isRead: true, apply });
export const write = <State>(apply: Apply<State>): Step<State> => ({ isRead: false, apply });

/** A response that no state explains. */
export const impossible = { isRead: true, apply: (_: unknown) => undefined } as const;

/** The history of a record of any kind. */
export interface CheckedRecord {
  readonly name: string;
  findViolation(): Violation<Pick<RecordedStep<unknown>, "call" | "endedAt">> | undefined;
}

/** The calls on a record. */
export interface HistoryRecord<State> extends CheckedRecord {
  /** All steps, with those of the records that it depends on. */
  steps(): readonly RecordedStep<State>[];
  add(call: RecordedCall, steps: readonly Step<State>[]): void;
}

export function createRecord<State>(
  name: string,
  initial: State,
  inherited: () => readonly RecordedStep<State>[] = () => [],
): HistoryRecord<State> {
  const own: RecordedStep<State>[] = [];
  const steps = () => [...own, ...inherited()];
  return {
    name,
    steps,
    findViolation: () => findViolation<State, RecordedStep<State>>(initial, steps()),

    add(call, added) {
      const { startedAt, isUnknown } = call;
      const endedAt = isUnknown ? Number.POSITIVE_INFINITY : call.endedAt;
      own.push(
        ...added
          // A read without a response shows nothing.
          .filter(({ isRead }) => !(isUnknown && isRead))
          .map((step) => ({ ...step, call, startedAt, endedAt })),
      );
    },
  };
}

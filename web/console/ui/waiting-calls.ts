import { serviceNow } from "./service-clock.js";

/** How the wait of a call ended: the time was over, or the user repeated or canceled it. */
export type WaitOutcome = "due" | "repeated" | "canceled";

interface WaitingCall {
  /** When it is repeated, by the clock of the service. */
  readonly dueAt: number;
  end(outcome: WaitOutcome): void;
}

let waiting: readonly WaitingCall[] = [];
const listeners = new Set<() => void>();

function setWaiting(calls: readonly WaitingCall[]): void {
  waiting = calls;
  for (const listener of listeners) {
    listener();
  }
}

/** Spreads calls that were refused at the same time. */
const maxJitterMs = 500;

/** Waits before a call is repeated, until the delay is over or the user decides. */
export function waitToRepeat(delayMs: number, signal: AbortSignal): Promise<WaitOutcome> {
  return new Promise((resolve) => {
    const delay = delayMs + Math.random() * maxJitterMs;
    const call: WaitingCall = {
      dueAt: serviceNow() + delay,
      end(outcome) {
        clearTimeout(timer);
        signal.removeEventListener("abort", cancel);
        setWaiting(waiting.filter((other) => other !== call));
        resolve(outcome);
      },
    };
    const cancel = () => call.end("canceled");
    const timer = setTimeout(() => call.end("due"), delay);
    signal.addEventListener("abort", cancel);
    setWaiting([...waiting, call]);
  });
}

/** Repeats or gives up all waiting calls. */
export function endWaiting(outcome: Exclude<WaitOutcome, "due">): void {
  for (const call of waiting) {
    call.end(outcome);
  }
}

/** When the last of the waiting calls is repeated. Undefined if none waits. */
export function readWaitEnd(): number | undefined {
  return waiting.length === 0 ? undefined : Math.max(...waiting.map(({ dueAt }) => dueAt));
}

/** Calls the listener when a call begins or ends to wait. Returns a function that stops it. */
export function onWaitingChange(listener: () => void): () => void {
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
  };
}

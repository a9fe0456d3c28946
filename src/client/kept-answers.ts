import type { GuardAnswer } from "./guard.js";

const answers = new WeakMap<object, GuardAnswer>();

/** Keeps what the guard said of a request for as long as the request is there. */
export function keepAnswer(request: object, answer: GuardAnswer): void {
  answers.set(request, answer);
}

/** What the guard said of a request, or an error where it was not asked. */
export function keptAnswer(request: object): GuardAnswer {
  return expectAnswer(answers.get(request));
}

export function expectAnswer(answer: GuardAnswer | undefined): GuardAnswer {
  if (!answer) {
    throw new Error("The guard was not asked about this request: put its middleware before this.");
  }
  return answer;
}

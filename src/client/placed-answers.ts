import type { AnswerCache, NewEntry } from "./answer-cache.js";
import type { GuardAnswer } from "./guard.js";
import { placedId, type Question } from "./question.js";

/**
 * Keys may be used from everywhere, but for a few: whether an answer is about
 * a place only the answer tells. So it is kept without its place, and where it
 * depends on that, with as much of it as matters too. What is kept without the
 * place then only tells what matters.
 */
export function remember(
  cache: AnswerCache<GuardAnswer>,
  question: Question,
  entry: NewEntry<GuardAnswer>,
): void {
  cache.set(question.id, entry);
  if (dependsOnPlace(entry.answer)) {
    cache.set(placedId(question, entry.answer), entry);
  }
}

/** What is known of a question, from where it is asked. */
export function recall(
  cache: AnswerCache<GuardAnswer>,
  question: Question,
  now: number,
): GuardAnswer | undefined {
  const answer = cache.get(question.id, now);
  return answer && dependsOnPlace(answer) ? cache.get(placedId(question, answer), now) : answer;
}

function dependsOnPlace({ dependsOnOrigin, dependsOnAddress }: GuardAnswer): boolean {
  return dependsOnOrigin === true || dependsOnAddress === true;
}

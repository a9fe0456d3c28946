import { Problem } from "../errors.js";
import { toTimestamp } from "../moments.js";
import type { Clock } from "../store/store.js";
import type { CheckAnswer } from "./check.js";

/** Answers a check among many. What is wrong with it is its answer; whatever else fails is not. */
export async function answerAmongMany(
  clock: Clock,
  check: () => Promise<CheckAnswer>,
): Promise<CheckAnswer> {
  try {
    return await check();
  } catch (reason) {
    if (!(reason instanceof Problem) || reason.word !== "invalid_request") {
      throw reason;
    }
    const { word, rawMessage } = reason;
    return { allowed: false, reason: word, detail: rawMessage, checkedAt: toTimestamp(clock()) };
  }
}

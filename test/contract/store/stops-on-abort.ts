import { expect } from "@jest/globals";
import type { BatchFollower } from "../../support/api/followers.js";

/** Sees that one who follows ends when the signal is given, whether it waits or not. */
export async function endsWithSignal<Batch>(
  follow: (options?: { signal: AbortSignal }) => BatchFollower<Batch, unknown>,
): Promise<void> {
  const end = { done: true, value: undefined };
  const waits = follow();
  await waits.next();
  const waited = waits.step();
  waits.stop();
  expect(await waited).toEqual(end);
  expect(await waits.step()).toEqual(end);

  const pauses = follow();
  await pauses.next();
  pauses.stop();
  expect(await pauses.step()).toEqual(end);

  const stopped = follow({ signal: AbortSignal.abort() });
  expect(await stopped.step()).toEqual(end);
}

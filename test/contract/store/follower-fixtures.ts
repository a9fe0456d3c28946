import { expect } from "@jest/globals";
import type { Change } from "../../../src/store/port/changes.js";
import type { Store } from "../../../src/store/port/store.js";
import type { Follow, FollowerOf } from "../../support/api/followers.js";
import { anApplication, update } from "./fixtures.js";

/** What a change tells, at whatever moment: a database may have a clock of its own for that. */
export function told(kind: Change["kind"], applicationId: string, sessionId?: string) {
  return { kind, applicationId, ...(sessionId && { sessionId }), at: expect.any(Number) };
}

/** Follows a tenant, and marks how far: all that happened before a mark is told before it. */
export async function followWithMarker(follow: Follow, store: Store, tenantId: string) {
  const marker = await store.applications.create(anApplication({ tenantId }));
  const follower = follow(store, tenantId);
  await follower.next();
  const isMarker = ({ applicationId }: Change) => applicationId === marker.id;
  return {
    follower,
    mark: (by = store) => update(by, marker),
    marked: told("updated", marker.id),
    readUntilMarker: (by = follower) => by.until(isMarker),
  };
}

/** Sees that one who follows ends when the signal is given, whether it waits or not. */
export async function expectToStopOnAbort<Batch>(
  follow: (options?: { signal: AbortSignal }) => FollowerOf<Batch, unknown>,
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

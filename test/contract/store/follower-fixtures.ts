import { expect } from "@jest/globals";
import type { Change } from "../../../src/store/port/changes.js";
import type { BatchFollower, Follow } from "../../support/api/followers.js";
import { audit } from "../../support/store/audit.js";
import type { OperableStore } from "../../support/store/operations.js";
import { anApplication, update } from "./fixtures.js";

/** A change at any time, since a database may use its own clock. */
export function expectedChange(kind: Change["kind"], applicationId: string, sessionId?: string) {
  return { kind, applicationId, ...(sessionId && { sessionId }), at: expect.any(Number) };
}

/** Follows a tenant with a marker application. Changes made before the marker is written are received before it. */
export async function followWithMarker(follow: Follow, store: OperableStore, tenantId: string) {
  const marker = await store.applications.create(anApplication({ tenantId }), audit.created);
  const follower = follow(store, tenantId);
  await follower.next();
  const isMarker = ({ applicationId }: Change) => applicationId === marker.id;
  return {
    follower,
    writeMarker: (by = store) => update(by, marker),
    markerChange: expectedChange("updated", marker.id),
    readUntilMarker: (by = follower) => by.until(isMarker),
  };
}

/** Expects a follower to stop when its signal aborts: while it waits, between reads and before it starts. */
export async function expectToStopOnAbort<Batch>(
  follow: (options?: { signal: AbortSignal }) => BatchFollower<Batch, unknown>,
): Promise<void> {
  const end = { done: true, value: undefined };
  const waiting = follow();
  await waiting.next();
  const pending = waiting.step();
  waiting.stop();
  expect(await pending).toEqual(end);
  expect(await waiting.step()).toEqual(end);

  const idle = follow();
  await idle.next();
  idle.stop();
  expect(await idle.step()).toEqual(end);

  const aborted = follow({ signal: AbortSignal.abort() });
  expect(await aborted.step()).toEqual(end);
}

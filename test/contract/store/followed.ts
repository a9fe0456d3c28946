import { expect } from "@jest/globals";
import type { Change } from "../../../src/store/port/changes.js";
import type { Store } from "../../../src/store/port/store.js";
import type { Follow } from "../../support/api/followers.js";
import { anApplication, update } from "./fixtures.js";

/** What a change tells, at whatever moment: a database may have a clock of its own for that. */
export function told(kind: Change["kind"], applicationId: string, sessionId?: string) {
  return { kind, applicationId, ...(sessionId && { sessionId }), at: expect.any(Number) };
}

/** Follows a tenant, and marks how far: all that happened before a mark is told before it. */
export async function followMarked(follow: Follow, store: Store, tenantId: string) {
  const marker = await store.applications.create(anApplication({ tenantId }));
  const follower = follow(store, tenantId);
  await follower.next();
  const isMarker = ({ applicationId }: Change) => applicationId === marker.id;
  return {
    follower,
    mark: (by = store) => update(by, marker),
    marked: told("updated", marker.id),
    untilMarked: (by = follower) => by.until(isMarker),
  };
}

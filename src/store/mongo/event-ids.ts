import { newId } from "../../ids.js";
import type { Clock } from "../store.js";

/** How many ids a millisecond has: as many as there are values of the three digits behind the version. */
const idsOfMillisecond = 0x1000;

/**
 * Makes UUIDs of version 7, each of which sorts after the one before: within a
 * millisecond they are counted, and one that is full lends from the next.
 */
export function createEventIds(clock: Clock): () => string {
  let moment = 0;
  let count = 0;

  return () => {
    const now = clock();
    if (now > moment) {
      [moment, count] = [now, 0];
    } else {
      count++;
      [moment, count] = count < idsOfMillisecond ? [moment, count] : [moment + 1, 0];
    }
    const id = newId(moment);
    return `${id.slice(0, 15)}${count.toString(16).padStart(3, "0")}${id.slice(18)}`;
  };
}

/** The least UUID that may be made at a moment. */
export function firstIdAt(moment: number): string {
  const digits = Math.max(moment, 0).toString(16).padStart(12, "0");
  return `${digits.slice(0, 8)}-${digits.slice(8)}-0000-0000-000000000000`;
}
